import type { CatalogModel } from '../catalog/catalog-schema.ts';
import type { CatalogStore } from '../catalog/catalog-store.ts';
import { TrafficStore } from '../ledger/traffic-store.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import type { Demand } from '../work/demand/demand.ts';
import { readDemand } from '../work/demand/read-demand.ts';
import type { CallClass } from '../work/queue/call-class.ts';
import { toDryRun } from './dry-run.ts';
import { listRoutes, type RoutesOf } from './upstreams.ts';

type Catalog = Pick<
  CatalogStore,
  'current' | 'find' | 'isDisabled' | 'isDrained' | 'isActive' | 'refreshDisabled'
>;

interface Deps {
  readonly redis: RedisClient;
}

/** What is in progress for a model that is switched on or off. */
export async function dryRunSwitchModel(
  { redis }: Deps,
  catalog: Catalog,
  model: CatalogModel,
  isOn: boolean,
) {
  await catalog.refreshDisabled();
  const [demand, requests] = await Promise.all([
    readDemand({ redis, catalog }),
    new TrafficStore(redis).countLastHour(model.id),
  ]);
  return toDryRun(
    {
      is_changed: catalog.isDisabled(model) === isOn,
      requests_last_hour: requests,
      ...countWork(demand, new Set([model.id])),
    },
    false,
  );
}

/** Which calls run on routes that are drained, and which models would have no route left, with their work. */
export async function dryRunDrainRoutes({ redis }: Deps, catalog: Catalog, of: RoutesOf) {
  await catalog.refreshDisabled();
  const concerned = catalog.current.models
    .map((model) => ({ model, routes: listRoutes(model, of) }))
    .filter(({ routes }) => routes.length > 0);
  const withoutRoute = concerned
    .filter(
      ({ model, routes }) =>
        catalog.isActive(model) &&
        model.routes.every((route) => routes.includes(route) || catalog.isDrained(model, route)),
    )
    .map(({ model }) => model.id);
  const nowMs = Date.now();
  const ids = new Set(concerned.flatMap(({ routes }) => routes.map(({ id }) => id)));
  const [demand, calls] = await Promise.all([
    readDemand({ redis, catalog }),
    callRedis(() =>
      Promise.all(Array.from(ids, (id) => redis.zcount(redisKeys.callsOfRoute(id), nowMs, '+inf'))),
    ),
  ]);
  return toDryRun(
    {
      calls: calls.reduce((sum, count) => sum + count, 0),
      models: concerned.map(({ model }) => model.id),
      models_without_route: withoutRoute,
      ...countWork(demand, new Set(withoutRoute)),
    },
    false,
  );
}

/** Counts what waits for some models and runs, as workers and api processes reported it within a second. */
function countWork({ work }: Demand, models: ReadonlySet<string>) {
  const count = (callClass: CallClass, name: 'waiting' | 'running'): number =>
    work.reduce(
      (sum, one) => sum + (models.has(one.model) && one.callClass === callClass ? one[name] : 0),
      0,
    );
  return {
    requests_waiting: count('interactive', 'waiting'),
    requests_running: count('interactive', 'running'),
    jobs_waiting: count('job', 'waiting'),
    jobs_running: count('job', 'running'),
    lines_waiting: count('batch', 'waiting'),
    lines_running: count('batch', 'running'),
  };
}
