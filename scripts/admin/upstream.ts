import {
  describeRoutes,
  drainRoutes,
  findUpstream,
  resetRoutes,
  unsetKey,
  type RoutesOf,
} from '../../shared/admin/upstreams.ts';
import { dryRunDrainRoutes } from '../../shared/admin/dry-run-routes.ts';
import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import { CommandError, type AdminContext, type AdminVerb } from './command.ts';
import { withCatalog } from './with-catalog.ts';

export const upstreamVerbs: Record<string, AdminVerb> = {
  list: {
    usage: '',
    help:
      'lists the routes and keys of all models, and why any of them is not called. succeeded, failed and rate_limited ' +
      'are calls of the route, with all of its keys, that ended within the last 30 s; calls are those of the upstream ' +
      'that run now, of max_calls; waiting_for_slot are requests, jobs and lines of the model that wait for a slot of ' +
      'any of its routes. A key is shown by its fingerprint: printf %s KEY | sha256sum | cut -c1-12',
    positionals: 0,
    options: [],
    columns: [
      'model',
      'upstream',
      'upstream_model',
      'weight',
      'key',
      'not_called',
      'drained',
      'breaker',
      'failed_accounts',
      'pause_seconds',
      'succeeded',
      'failed',
      'rate_limited',
      'calls',
      'max_calls',
      'waiting_for_slot',
    ],
    run: listUpstreams,
  },
  reset: {
    usage: '<upstream> [<model>]',
    help: 'closes its circuit breakers and ends the cooldowns of its keys, without waiting for the next probe; with a model, only for that',
    positionals: 1,
    optionalPositionals: 1,
    options: [],
    isChange: true,
    run: (context) => withRoutes(context, (catalog, of) => resetRoutes(context, context.trail, catalog, of)),
  },
  drain: {
    usage: '<upstream> [<model>] [--dry-run]',
    help: 'makes no further calls to it, or with a model to its routes of that, until they are undrained; running calls continue; --dry-run only says which models would have no route left',
    positionals: 1,
    optionalPositionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: (context) =>
      withRoutes(context, (catalog, of) =>
        context.flags.has('dry-run')
          ? dryRunDrainRoutes(context, catalog, of)
          : drainRoutes(context, context.trail, catalog, of, true),
      ),
  },
  undrain: {
    usage: '<upstream> [<model>]',
    help: 'calls it again; give the same arguments as for drain',
    positionals: 1,
    optionalPositionals: 1,
    options: [],
    isChange: true,
    run: (context) =>
      withRoutes(context, (catalog, of) => drainRoutes(context, context.trail, catalog, of, false)),
  },
};

/**
 * Gives keys whose variable is not set a placeholder, so that their upstreams can still be shown and reset. The
 * operator's shell rarely has the gateway's secrets.
 */
function withKeyPlaceholders(context: AdminContext): AdminContext {
  const env = new Proxy(context.env, {
    get(target, name) {
      if (typeof name !== 'string') return undefined;
      return Object.hasOwn(target, name) ? target[name] : `${unsetKey}${name}`;
    },
  });
  return { ...context, env };
}

async function listUpstreams(context: AdminContext): Promise<unknown> {
  return await withCatalog(withKeyPlaceholders(context), (catalog) => describeRoutes(context, catalog, null));
}

/** Finds the upstream and the model in the arguments. @throws CommandError if there are none */
async function withRoutes(
  context: AdminContext,
  use: (catalog: CatalogStore, of: RoutesOf) => Promise<unknown>,
): Promise<unknown> {
  const [name = '', modelId] = context.positionals;
  return await withCatalog(withKeyPlaceholders(context), async (catalog) => {
    const upstream = findUpstream(catalog, name);
    if (upstream === undefined) {
      const known = catalog.current.upstreams.map((one) => one.name).join(', ');
      throw new CommandError(`There is no upstream "${name}" that can be used. There are: ${known}.`);
    }
    const model = modelId === undefined ? null : catalog.find(modelId);
    if (model === undefined) throw new CommandError(`There is no model "${modelId}" in the catalog.`);
    return await use(catalog, { upstream, model });
  });
}
