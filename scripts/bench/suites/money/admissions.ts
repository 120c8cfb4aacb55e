import { setTimeout as delay } from 'node:timers/promises';
import type { RedisClient } from '../../../../shared/platform/redis/redis-client.ts';
import { shardCount } from '../../../../shared/platform/redis/redis-keys.ts';
import { startCpuPhase } from '../../harness/clocks/cpu-clock.ts';
import { readRedisCpuUs } from '../../harness/clocks/redis-clock.ts';
import type { Programs } from '../../harness/programs.ts';
import type { Settings } from '../../harness/suite.ts';
import { countReservations, ledgerStreams, startMoneyStack, type MoneyStack } from './money-stack.ts';
import { plainStream, runPairs, runPlain, runScripts } from './pairs.ts';

export type PairVariant = 'plain' | 'scripts';

export interface PairRun {
  readonly way: PairVariant;
  readonly measuredMs: number;
  /** Pairs (an admission and a settlement, or their plain equivalents) that finished within the measured time. */
  readonly pairs: number;
  readonly pairsPerSecond: number;
  /** CPU time as reported by Redis, across its threads. Independent of other processes on the machine. */
  readonly redisUsPerPair: number;
  readonly pairsPerRedisSecond: number;
  readonly loadUsPerPair: number;
  /** Share of all CPU time used by other processes, 0..1. */
  readonly othersShare: number;
  /** Errors found in the balances. */
  readonly faults: readonly string[];
}

export interface AdmissionsOptions {
  readonly programs: Programs;
  readonly settings: Settings;
  /** Concurrent pairs. */
  readonly callers: number;
  readonly onStep: (variant: PairVariant) => void;
}

export const admissionAccounts = 1_000;
/** Enough that Redis always finds a full pipeline. */
export const concurrentPairs = 512;

const trimEveryMs = 100;
const maxEntries = 1_000;

/** Measures both variants, one after the other, on one Redis and with the same accounts. */
export async function measureAdmissions(options: AdmissionsOptions): Promise<PairRun[]> {
  const stack = await startMoneyStack(options.programs, admissionAccounts);
  const runs: PairRun[] = [];
  for (const variant of ['plain', 'scripts'] as const) {
    options.onStep(variant);
    runs.push(await measureVariant(options, stack, variant));
  }
  return runs;
}

async function measureVariant(
  options: AdmissionsOptions,
  stack: MoneyStack,
  variant: PairVariant,
): Promise<PairRun> {
  const { settings } = options;
  const { redis, accounts, pids } = stack;
  const charged = new Map<string, bigint>(accounts.map(({ id }) => [id, 0n]));
  const balances = await readBalances(stack);
  let pairs = 0;
  let isStopping = false;
  let onPair = (): void => undefined;
  const running = runPairs(
    redis,
    accounts,
    {
      pair: variant === 'scripts' ? runScripts : runPlain,
      concurrency: options.callers,
      shouldStop: () => isStopping,
    },
    ({ id }, costNano) => {
      pairs += 1;
      charged.set(id, charged.get(id)! + costNano);
      onPair();
    },
  );
  // A failing pair ends the run immediately. The remaining load is stopped below.
  const measuring = async () => {
    await delay(settings.warmUpMs);
    const endCpuPhase = startCpuPhase({ ...pids, load: process.pid });
    const before = await sample();
    const onePair = new Promise<void>((resolve) => (onPair = resolve));
    // Measure at least one pair, even on a slow machine.
    await Promise.all([delay(settings.measureMs), onePair]);
    const cpu = endCpuPhase();
    const after = await sample();
    return { cpu, count: after.pairs - before.pairs, redisUs: after.redisUs - before.redisUs };
  };
  const sample = async () => ({ pairs, redisUs: await readRedisCpuUs(redis) });
  const trimming = setInterval(() => trim(redis), trimEveryMs);
  try {
    const measured = await Promise.race([measuring(), running.then(() => null)]);
    if (measured === null) throw new Error('the load ended before it was measured');
    isStopping = true;
    await running;
    const { cpu, count, redisUs } = measured;
    const redisUsPerPair = redisUs / count;
    return {
      way: variant,
      measuredMs: cpu.measuredMs,
      pairs: count,
      pairsPerSecond: (count * 1_000) / cpu.measuredMs,
      redisUsPerPair,
      pairsPerRedisSecond: 1_000_000 / redisUsPerPair,
      loadUsPerPair: ((cpu.processes['load'] ?? 0) * 1_000) / count,
      othersShare: cpu.othersShare,
      faults: await findFaults(stack, balances, charged),
    };
  } finally {
    isStopping = true;
    clearInterval(trimming);
  }
}

/**
 * Trims the ledgers, because nothing reads them. Otherwise they would fill the memory, and requests would be rejected.
 */
function trim(redis: RedisClient): void {
  const plain = Array.from({ length: shardCount }, (_, shard) => plainStream(shard));
  for (const stream of [...ledgerStreams, ...plain]) {
    // If Redis is unavailable, the pairs fail and report it.
    redis.xtrim(stream, 'MAXLEN', '~', maxEntries).catch(() => undefined);
  }
}

async function readBalances({ accounts, hotAccounts }: MoneyStack): Promise<Map<string, bigint>> {
  const hotAccountList = await Promise.all(accounts.map(({ id }) => hotAccounts.get(id)));
  return new Map(hotAccountList.map(({ id, balanceNano }) => [id, balanceNano]));
}

async function findFaults(
  stack: MoneyStack,
  before: ReadonlyMap<string, bigint>,
  charged: ReadonlyMap<string, bigint>,
): Promise<string[]> {
  const after = await readBalances(stack);
  const mismatched = [...after].filter(([id, balance]) => balance !== before.get(id)! - charged.get(id)!);
  const faults = mismatched.length === 0 ? [] : [`${mismatched.length} balances do not match the charges`];
  const openReservations = await countReservations(stack.redis);
  return openReservations === 0 ? faults : [...faults, `${openReservations} reservations were never ended`];
}
