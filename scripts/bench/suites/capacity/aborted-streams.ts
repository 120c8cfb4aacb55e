import { setTimeout as delay } from 'node:timers/promises';
import type { LoadResult } from '../../harness/load/load-plan.ts';
import { runLoad } from '../../harness/load/run-load.ts';
import { listErrors } from '../../harness/statistics.ts';
import { formatWhole, Table } from '../../harness/table.ts';
import type { CapacityResult, CapacityRun } from './capacity-scenario.ts';
import { startCapacityStack, streamPlan, type CapacityStack } from './capacity-stack.ts';
import type { Holding } from './probe.ts';

const pace = { tokens: 20, tokenMs: 10 };
const callers = 128;
/** Streams before the measurement, under the same load: afterwards, caches and pools have their size. */
const warmUpRequests = 2_000;
/** Longer than a stream takes, so that callers disconnect at every moment, even after the end. */
const aborts = { share: 1 / 3, maxMs: 300 };
/** What is left of a stream must be gone within this time. */
const settleMs = 60_000;
const pollMs = 1_000;
/** Heaps vary by this much between two collections. */
const heapSlackKb = 2_000;
/** Idle connections to Redis, MongoDB and the vendor come and go. */
const countSlack = 8;

interface Holdings {
  readonly api: Holding;
  readonly worker: Holding;
  readonly redisKeys: number;
}

/** Runs streams of which a third are aborted at random, and compares what is held before and after. */
export async function measureAbortedStreams(run: CapacityRun): Promise<CapacityResult> {
  const { counts, onProgress } = run;
  const stack = await startCapacityStack(run, { brisk: pace });
  const warmUp = await runStreams(run, stack, warmUpRequests);
  await stack.money.checkEnded();
  const before = await readHoldings(stack, null);
  onProgress(`${counts.aborted} streams`);
  const startedAt = new Date();
  const load = await runStreams(run, stack, counts.aborted);
  const money = await stack.money.checkEnded(startedAt);
  const after = await readHoldings(stack, before);
  const grown = findGrowth(before, after);
  const charged = money.charges - load.allAnswers;
  const table = new Table<Row>([
    { title: '', width: 18, cell: ({ name }) => name },
    { title: 'before', width: 9, cell: ({ read }) => formatWhole(read(before)) },
    { title: 'after', width: 9, cell: ({ read }) => formatWhole(read(after)) },
    { title: '', cell: ({ name }) => (grown.includes(name) ? 'GROWS' : 'flat') },
  ]);
  return {
    lines: [
      ...table.format(rows),
      `${load.allAnswers} complete and ${load.aborted} aborted streams, ${charged} of which had output and were charged`,
    ],
    values: { streams: counts.aborted, aborted: load.aborted, before, after, grown },
    faults: [
      ...listErrors(warmUp.errors),
      ...listErrors(load.errors),
      ...money.faults,
      ...(charged < 0 ? [`${-charged} complete streams were not charged`] : []),
      ...(charged > load.aborted ? [`${charged - load.aborted} streams were charged twice`] : []),
      ...grown.map((name) => `${name}: grew`),
    ],
  };
}

interface Row {
  readonly name: string;
  readonly read: (holdings: Holdings) => number;
  readonly slack: number;
}

const rowsOf = (role: 'api' | 'worker'): Row[] => [
  { name: `${role}: heap in KB`, read: (one) => one[role].heapBytes / 1_024, slack: heapSlackKb },
  { name: `${role}: sockets`, read: (one) => one[role].sockets, slack: countSlack },
  { name: `${role}: timers`, read: (one) => one[role].timers, slack: countSlack },
];

const rows: readonly Row[] = [
  ...rowsOf('api'),
  ...rowsOf('worker'),
  { name: 'redis: keys', read: ({ redisKeys }) => redisKeys, slack: countSlack },
];

const findGrowth = (before: Holdings, after: Holdings): string[] =>
  rows.filter(({ read, slack }) => read(after) > read(before) + slack).map(({ name }) => name);

/** Waits until nothing has grown, or as long as it may take. Without `before`, waits until two readings are alike. */
async function readHoldings(stack: CapacityStack, before: Holdings | null): Promise<Holdings> {
  const untilMs = performance.now() + settleMs;
  let earlier = before;
  for (;;) {
    const holdings = { ...(await stack.probe()), redisKeys: await stack.redis.dbsize() };
    if (earlier !== null && findGrowth(earlier, holdings).length === 0) return holdings;
    if (performance.now() > untilMs) return holdings;
    earlier = before ?? holdings;
    await delay(pollMs);
  }
}

const runStreams = (
  { programs }: CapacityRun,
  { gateway, pids }: CapacityStack,
  requests: number,
): Promise<LoadResult> =>
  runLoad(programs, {
    ...gateway,
    ...streamPlan('brisk', pace),
    callers,
    span: { kind: 'work', requests },
    aborts,
    pids,
  });
