import { setTimeout as delay } from 'node:timers/promises';
import type { Programs } from '../programs.ts';
import { formatWhole } from '../report.ts';
import { runLoad } from '../run-load.ts';
import type { LoadResult } from '../load-plan.ts';
import { chatPlan, startCapacityStack, type CapacityStack } from './capacity-stack.ts';
import type { Holding } from './probe.ts';
import { formatTable, listLoadFaults, type CapacityResult, type CapacityRun } from './report.ts';

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
  const { programs, options, onProgress } = run;
  const stack = await startCapacityStack(run, { brisk: pace });
  try {
    const warmUp = await runStreams(programs, stack, warmUpRequests);
    await stack.money.checkEnded();
    const before = await readHoldings(stack, null);
    onProgress(`${options.aborted} streams`);
    const startedAt = new Date();
    const load = await runStreams(programs, stack, options.aborted);
    const money = await stack.money.checkEnded(startedAt);
    const after = await readHoldings(stack, before);
    const grown = findGrowth(before, after);
    const charged = money.charges - load.allAnswers;
    return {
      lines: [
        ...formatTable(
          ['', 'before', 'after', ''],
          rows.map(({ name, read }) => [
            name,
            ...[before, after].map((holdings) => formatWhole(read(holdings))),
            grown.includes(name) ? 'GROWS' : 'flat',
          ]),
        ),
        `${load.allAnswers} complete and ${load.aborted} aborted streams, ${charged} of which had output and were charged`,
      ],
      values: { streams: options.aborted, aborted: load.aborted, before, after, grown },
      faults: [
        ...listLoadFaults(warmUp),
        ...listLoadFaults(load),
        ...money.faults,
        ...(charged < 0 ? [`${-charged} complete streams were not charged`] : []),
        ...(charged > load.aborted ? [`${charged - load.aborted} streams were charged twice`] : []),
        ...grown.map((name) => `${name}: grew`),
      ],
    };
  } finally {
    await stack.close();
  }
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
    const holdings = { ...(await stack.probe()), redisKeys: await stack.countRedisKeys() };
    if (earlier !== null && findGrowth(earlier, holdings).length === 0) return holdings;
    if (performance.now() > untilMs) return holdings;
    earlier = before ?? holdings;
    await delay(pollMs);
  }
}

async function runStreams(programs: Programs, stack: CapacityStack, requests: number): Promise<LoadResult> {
  return await runLoad(programs, {
    ...stack.gateway,
    ...chatPlan('brisk', true),
    callers,
    span: { kind: 'work', requests },
    aborts,
    expects: { kind: 'stream', tokens: pace.tokens },
    pids: stack.pids,
  });
}
