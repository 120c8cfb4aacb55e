import { describeRefusal } from '../../../../shared/admin/describe-stop.ts';
import { isLedgerBehind } from '../../../../shared/operator/ledger-lag.ts';
import { within } from '../../../../shared/platform/runtime/within.ts';
import type { Demand } from '../../../../shared/work/demand/demand.ts';
import { summarizeQueue, toSeconds } from '../../../../shared/work/demand/summarize-demand.ts';
import type { QueueName } from '../../../../shared/work/queue/job-kinds.ts';
import {
  WorkerRegistryStore,
  type RunningProcess,
} from '../../../../shared/work/queue/worker-registry-store.ts';
import type { Overview } from '../../../contract/admin/overview.ts';
import type { RefusedKey, SystemReading } from '../../../operator/conditions/system-reading.ts';
import type { UpstreamState } from '../../../operator/watch-upstreams.ts';
import type { Services } from '../../../services.ts';
import { describeConditions } from './describe-conditions.ts';
import { findRefusingModels } from './find-refusing-models.ts';

type Part<Name extends keyof Overview> = NonNullable<Overview[Name]>;

/** A part that takes longer is left out. */
const maxReadMs = 2_000;

/** Reads what the first page of operators shows. Parts that cannot be read are null. Never throws for an outage. */
export async function readOverview(services: Services): Promise<Overview> {
  const { catalog, conditions, demand, redis, system, traffic: trafficStats, upstreams } = services;
  const reading = await system.read();
  // Sums that were read before an outage are still known; they would look like those of now.
  const ifUp = async <T>(read: () => Promise<T>): Promise<T | null> =>
    reading.isRedisUp ? await attempt(read) : null;
  const [traffic, queues, states, processes] = await Promise.all([
    ifUp(async () => (await trafficStats.get()).value),
    ifUp(async () => describeQueues(await demand.get())),
    ifUp(() => upstreams.get()),
    ifUp(() => new WorkerRegistryStore(redis).readProcesses()),
  ]);
  const parts = {
    traffic,
    queues,
    upstreams: states && states.map((state) => describeUpstream(state, catalog, reading.refusedKeys)),
    processes: processes && {
      apis: describeProcesses(processes.api),
      workers: describeProcesses(processes.worker),
    },
    ledger: reading.ledger && describeLedger(reading.ledger),
  };
  return {
    at: new Date().toISOString(),
    unavailable: (Object.keys(parts) as (keyof typeof parts)[]).filter((name) => parts[name] === null),
    conditions: describeConditions(conditions.list()),
    refusing_models: states && findRefusingModels(catalog, states),
    ...parts,
  };
}

async function attempt<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await within(maxReadMs, read(), () => null);
  } catch {
    // The client of the store logs its outage.
    return null;
  }
}

const describeQueues = (demand: Demand): Part<'queues'> => ({
  chat: describeQueue(demand, 'chat'),
  image: describeQueue(demand, 'image'),
  embedding: describeQueue(demand, 'embedding'),
});

function describeQueue(demand: Demand, queue: QueueName): Part<'queues'>['chat'] {
  const sums = summarizeQueue(demand, queue);
  return {
    waiting: sums.waiting,
    waiting_for_slot: sums.waitingForSlot,
    running: sums.running,
    oldest_waiting_seconds: toSeconds(sums.oldestMs),
    eta_seconds: sums.etaSeconds,
    workers: demand.queues[queue].workers,
  };
}

/** @param refused null if it is not known which keys are */
function describeUpstream(
  state: UpstreamState,
  catalog: Pick<Services['catalog'], 'current' | 'isDrained' | 'isUpstreamDrained'>,
  refused: readonly RefusedKey[] | null,
): Part<'upstreams'>[number] {
  const { name, models } = state;
  const drained = catalog.current.models.filter((model) =>
    model.routes.some((route) => route.upstream.name === name && catalog.isDrained(model, route)),
  );
  return {
    name,
    slots: state.slots,
    slots_used: state.slotsUsed,
    routes: models.length,
    breaker: state.breaker,
    open_breakers: state.openBreakers,
    drained: catalog.isUpstreamDrained(name),
    drained_models: drained.map(({ id }) => id),
    keys: state.keys,
    refused_keys: refused && refused.filter(({ upstream }) => upstream === name).length,
    cooldown_seconds: Math.ceil(state.cooldownMs / 1_000),
    last_refusal: describeRefusal(state.lastRefusal),
  };
}

function describeProcesses(processes: readonly RunningProcess[]): Part<'processes'>['apis'] {
  const builds = new Map<string, number>();
  for (const { build } of processes) builds.set(build, (builds.get(build) ?? 0) + 1);
  return {
    count: processes.length,
    oldest_started_at:
      processes.length === 0
        ? null
        : new Date(Math.min(...processes.map(({ startedAtMs }) => startedAtMs))).toISOString(),
    builds: Array.from(builds, ([build, count]) => ({ build, count })).sort((a, b) => b.count - a.count),
  };
}

const describeLedger = (ledger: NonNullable<SystemReading['ledger']>): Part<'ledger'> => ({
  waiting: ledger.entries,
  lag_seconds: toSeconds(ledger.oldestMs),
  is_behind: isLedgerBehind(ledger),
  dead: ledger.deadEntries,
});
