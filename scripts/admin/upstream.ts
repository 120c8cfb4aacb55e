import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import { readDemand } from '../../shared/work/demand/read-demand.ts';
import {
  readCandidates,
  RouteStateStore,
  type CandidateState,
} from '../../shared/routing/route-state-store.ts';
import type { RouteCandidate } from '../../shared/routing/route-candidate.ts';
import { CommandError, type AdminContext, type AdminVerb } from './command.ts';
import { describePartialStop, describeStop } from './describe-stop.ts';
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
    run: listUpstreams,
  },
  reset: {
    usage: '<upstream>',
    help: 'closes its circuit breakers and ends the cooldowns of its keys, without waiting for the next probe',
    positionals: 1,
    options: [],
    run: resetUpstream,
  },
};

const unset = 'unset:';

/**
 * Gives keys whose variable is not set a placeholder, so that their upstreams can still be shown and reset. The
 * operator's shell rarely has the gateway's secrets.
 */
function withKeyPlaceholders(context: AdminContext): AdminContext {
  const env = new Proxy(context.env, {
    get(target, name) {
      if (typeof name !== 'string') return undefined;
      return Object.hasOwn(target, name) ? target[name] : `${unset}${name}`;
    },
  });
  return { ...context, env };
}

/** Lists a row per key of each route: whether it can be called, and if not, why. */
async function listUpstreams(context: AdminContext): Promise<unknown> {
  return await withCatalog(withKeyPlaceholders(context), (catalog) =>
    describeCandidates(context, catalog, null),
  );
}

/** For an operator who has paid a bill or fixed a server and does not want to wait for the next probe. */
async function resetUpstream(context: AdminContext): Promise<unknown> {
  const name = context.positionals[0]!;
  return await withCatalog(withKeyPlaceholders(context), async (catalog) => {
    const { current } = catalog;
    const upstream = current.upstreams.find((one) => one.name === name);
    if (upstream === undefined) {
      const known = current.upstreams.map((one) => one.name).join(', ');
      throw new CommandError(`There is no upstream "${name}" that can be used. There are: ${known}.`);
    }
    const routes = current.models.flatMap((model) => model.routes).filter((one) => one.upstream === upstream);
    await new RouteStateStore(context.redis).reset(upstream, routes);
    return await describeCandidates(context, catalog, name);
  });
}

async function describeCandidates(
  { redis }: AdminContext,
  catalog: CatalogStore,
  upstream: string | null,
): Promise<object[]> {
  const store = new RouteStateStore(redis);
  const nowMs = Date.now();
  const { work } = await readDemand({ redis, catalog });
  const countWaiting = ({ id }: CatalogModel): number =>
    work.reduce((sum, one) => (one.model === id ? sum + one.waitingForSlot : sum), 0);
  const rows = await Promise.all(
    catalog.current.models.map(async (model) => {
      const routes = model.routes.filter((route) => upstream === null || route.upstream.name === upstream);
      const candidates = await readCandidates(store, routes, nowMs);
      return candidates.map(({ candidate, state }) =>
        describeCandidate(model, candidate, state, {
          isDisabled: catalog.isDisabled(model),
          waitingForSlot: countWaiting(model),
        }),
      );
    }),
  );
  return rows.flat();
}

function describeCandidate(
  model: CatalogModel,
  { route, apiKey, fingerprint }: RouteCandidate,
  state: CandidateState,
  { isDisabled, waitingForSlot }: { readonly isDisabled: boolean; readonly waitingForSlot: number },
): object {
  const { upstream } = route;
  // Never show the key itself. Show its position in the catalog and its name in the logs.
  const position = `${upstream.apiKeys.indexOf(apiKey ?? '') + 1} of ${upstream.apiKeys.length}`;
  const variable = apiKey?.startsWith(unset) === true ? apiKey.slice(unset.length) : null;
  const disabled = `the model is disabled by an operator: model enable ${model.id}`;
  const unsetKey = variable === null ? null : `${variable} is not set in this shell`;
  return {
    model: model.id,
    upstream: upstream.name,
    upstream_model: route.model,
    key: apiKey === null ? null : `${position} (${unsetKey ?? fingerprint})`,
    not_called: isDisabled ? disabled : (describeStop(state) ?? unsetKey ?? describePartialStop(state)),
    breaker: state.breaker,
    failed_accounts: state.failedAccounts,
    pause_seconds: Math.ceil(state.pauseMs / 1_000),
    succeeded: state.succeeded,
    failed: state.failed,
    rate_limited: state.rateLimited,
    calls: state.calls,
    max_calls: upstream.maxConcurrency,
    waiting_for_slot: waitingForSlot,
  };
}
