import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import { describeModel, listModels, switchModel } from '../../shared/admin/models.ts';
import { dryRunSwitchModel } from '../../shared/admin/dry-run-routes.ts';
import { testModel } from '../../shared/admin/test-model.ts';
import { CommandError, type AdminContext, type AdminVerb, type ChangeContext } from './command.ts';
import { withCatalog } from './with-catalog.ts';

export const modelVerbs: Record<string, AdminVerb> = {
  list: {
    usage: '',
    help: 'lists the models in the catalog, and why any of them is not served',
    positionals: 0,
    options: [],
    run: list,
  },
  disable: {
    usage: '<id> [--dry-run]',
    help: 'refuses requests for the model on all servers until it is enabled; --dry-run only counts its work',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: (context) => switchOneModel(context, false),
  },
  enable: {
    usage: '<id>',
    help: 'serves the model again',
    positionals: 1,
    options: [],
    isChange: true,
    run: (context) => switchOneModel(context, true),
  },
  test: {
    usage: '<id>',
    help: 'has a worker make one short call to the model, and shows how it went; the vendor charges for it, and no account does',
    positionals: 1,
    options: [],
    isChange: true,
    run: test,
  },
};

/** Where the keys of upstreams may be missing. */
const place = 'in this shell';

async function list(context: AdminContext): Promise<unknown> {
  return await withCatalog(context, (catalog) => listModels(context, catalog, place));
}

function findModel(catalog: CatalogStore, id: string): CatalogModel {
  const model = catalog.find(id);
  if (model === undefined) throw new CommandError(`There is no model "${id}" in the catalog.`);
  return model;
}

/** Switches the model on or off. Takes effect within a second in every process. */
async function switchOneModel(context: ChangeContext, isOn: boolean): Promise<unknown> {
  return await withCatalog(context, async (catalog) => {
    const model = findModel(catalog, context.positionals[0]!);
    if (context.flags.has('dry-run')) return await dryRunSwitchModel(context, catalog, model, isOn);
    await switchModel(context, context.trail, catalog, model, isOn);
    return describeModel(model, catalog, place);
  });
}

async function test(context: ChangeContext): Promise<unknown> {
  return await withCatalog(context, async (catalog) =>
    testModel(context, context.trail, findModel(catalog, context.positionals[0]!)),
  );
}
