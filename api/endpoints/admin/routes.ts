import { dryRunDrainRoutes, dryRunSwitchModel } from '../../../shared/admin/dry-run-routes.ts';
import { describeModel, listModels, switchModel } from '../../../shared/admin/models.ts';
import { takePage } from '../../../shared/admin/page.ts';
import { testModel as testInWorker } from '../../../shared/admin/test-model.ts';
import {
  describeRoutes,
  describeUnusableRoutes,
  drainRoutes,
  findUpstream,
  resetRoutes,
  type DescribedRoute,
  type RoutesOf,
} from '../../../shared/admin/upstreams.ts';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { modelNotFound } from '../../../shared/contract/model-errors.ts';
import type { UpstreamRequest } from '../../contract/admin/routes.ts';
import { operations } from '../../contract/operations.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { readerOf, readFromRedis } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';
import { defineAdminEndpoint, pageOf, presentPage, trailOf } from './define-admin-endpoint.ts';

/** Where the keys of upstreams may be missing. */
const place = 'in the api process';

function findModel({ catalog }: Services, id: string): CatalogModel {
  const model = catalog.find(id);
  if (model === undefined) throw modelNotFound(id);
  return model;
}

export const listAdminModels = defineAdminEndpoint(
  operations.listAdminModels,
  (services) => async (context) => {
    const models = await readFromRedis(services, readerOf(context), 'list', () =>
      listModels(services, services.catalog, place),
    );
    const page = await takePage(models, pageOf(context.state.query), ({ id }) => id);
    return presentPage(page, (model) => model);
  },
);

export const updateModel = defineAdminEndpoint(operations.updateModel, (services) => async (context) => {
  const { catalog } = services;
  const model = findModel(services, context.state.path.model_id);
  const { active } = context.state.body;
  if (context.state.query.dry_run) return await dryRunSwitchModel(services, catalog, model, active);
  await switchModel(services, trailOf(services, context), catalog, model, active);
  return describeModel(model, catalog, place);
});

/** Not in a turn: it waits for a worker. */
export const testModel = defineAdminEndpoint(
  operations.testModel,
  (services) => (context) =>
    testInWorker(
      services,
      trailOf(services, context),
      findModel(services, context.state.path.model_id),
      context.state.signal,
    ),
);

const nameRow = ({ model, upstream, upstream_model, key }: DescribedRoute): string =>
  [model, upstream, upstream_model, key ?? ''].join(' ');

export const listUpstreams = defineAdminEndpoint(operations.listUpstreams, (services) => async (context) => {
  const { upstream } = context.state.query;
  const called = await readFromRedis(services, readerOf(context), 'list', () =>
    describeRoutes(services, services.catalog, null),
  );
  const rows = [...called, ...describeUnusableRoutes(services.catalog, place)];
  const wanted = rows.filter((row) => upstream === undefined || row.upstream === upstream);
  return presentPage(await takePage(wanted, pageOf(context.state.query), nameRow), (row) => row);
});

interface UpstreamContext extends ApiContext {
  readonly state: ApiContext['state'] & {
    readonly path: { readonly name: string };
    readonly body: UpstreamRequest;
  };
}

/** Finds the upstream in the path and the model in the body. @throws AppError `not_found`, `model_not_found` */
function findRoutes(services: Services, { state }: UpstreamContext): RoutesOf {
  const { name } = state.path;
  const upstream = findUpstream(services.catalog, name);
  if (upstream === undefined)
    throw new AppError('not_found', {
      message: `There is no upstream ${JSON.stringify(name.slice(0, 50))} that can be used. GET /v1/admin/upstreams lists them.`,
    });
  const { model = null } = state.body;
  return { upstream, model: model === null ? null : findModel(services, model) };
}

export const resetUpstream = defineAdminEndpoint(operations.resetUpstream, (services) => async (context) => {
  const of = findRoutes(services, context);
  return { data: await resetRoutes(services, trailOf(services, context), services.catalog, of) };
});

export const drainUpstream = defineAdminEndpoint(operations.drainUpstream, (services) => async (context) => {
  const of = findRoutes(services, context);
  if (context.state.query.dry_run) return await dryRunDrainRoutes(services, services.catalog, of);
  return { data: await drainRoutes(services, trailOf(services, context), services.catalog, of, true) };
});

export const undrainUpstream = defineAdminEndpoint(
  operations.undrainUpstream,
  (services) => async (context) => {
    const of = findRoutes(services, context);
    return { data: await drainRoutes(services, trailOf(services, context), services.catalog, of, false) };
  },
);
