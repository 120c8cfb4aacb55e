import { divideCpu } from '../../harness/clocks/cpu-clock.ts';
import { compareRedisUse, readRedisUse, type RedisUse } from '../../harness/clocks/redis-clock.ts';
import { countCallers, type LoadPlan, type LoadResult } from '../../harness/load/load-plan.ts';
import { runLoad } from '../../harness/load/run-load.ts';
import type { Programs } from '../../harness/programs.ts';
import type { MoneyResult } from '../../harness/stack/money-check.ts';
import type { StandardStack } from '../../harness/stack/standard-stack.ts';
import type { Settings } from '../../harness/suite.ts';
import type { LoadScenario, Variant } from './load-scenario.ts';

export interface RunResult extends LoadResult {
  readonly way: Variant;
  /** CPU milliseconds per response, including background responses, by process. */
  readonly cpuMsPerRequest: Readonly<Record<string, number>>;
  /** Share of all CPU time used by other processes, 0..1. */
  readonly othersShare: number;
  /** What Redis executed per response; only for runs through the gateway, like `money`. */
  readonly redisPerRequest: RedisUse | null;
  readonly money: MoneyResult | null;
}

/** Runs one scenario once, directly or through the gateway, with a new load generator. */
export async function measure(
  settings: Settings,
  programs: Programs,
  stack: StandardStack,
  scenario: LoadScenario,
  variant: Variant,
): Promise<RunResult> {
  const startedAt = new Date();
  const isGateway = variant === 'gateway';
  const redisBefore = isGateway ? await readRedisUse(stack.redis) : null;
  const stopObserving = isGateway && scenario.isObserved === true ? observe(stack) : null;
  const load = await runLoad(programs, createPlan(settings, stack, scenario, variant));
  await stopObserving?.();
  return {
    ...load,
    way: variant,
    cpuMsPerRequest: divideCpu(load.cpu, load.answers + load.backgroundAnswers),
    othersShare: load.cpu.othersShare,
    // Read before the ledger is checked, which sends commands, too.
    redisPerRequest:
      redisBefore === null
        ? null
        : compareRedisUse(redisBefore, await readRedisUse(stack.redis), load.allAnswers),
    money: isGateway ? await stack.money.check(startedAt, load.allAnswers) : null,
  };
}

const observeEveryMs = 1_000;

/** Reads what a monitoring system and a scaler read. @returns a function that stops it; it throws if a read failed */
function observe({ gateway: { host, port } }: StandardStack): () => Promise<void> {
  const reads: Promise<void>[] = [];
  const read = async (path: string): Promise<void> => {
    const response = await fetch(`http://${host}:${port}${path}`);
    await response.text();
    if (!response.ok) throw new Error(`${path}: HTTP ${response.status}`);
  };
  const timer = setInterval(() => {
    const both = Promise.all([read('/metrics'), read('/v1/admin/demand')]).then(() => undefined);
    // Reported by the function that stops it.
    both.catch(() => undefined);
    reads.push(both);
  }, observeEveryMs);
  return async () => {
    clearInterval(timer);
    await Promise.all(reads);
  };
}

function createPlan(
  settings: Settings,
  stack: StandardStack,
  scenario: LoadScenario,
  variant: Variant,
): LoadPlan {
  const { warmUpMs, measureMs } = settings;
  const { vendor, background, requestsEach } = scenario;
  const callers = countCallers(scenario, settings);
  return {
    ...(variant === 'direct' && vendor !== null ? stack.vendors[vendor].target : stack.gateway),
    path: `/v1${scenario.path}`,
    body: JSON.stringify({ model: scenario.models[variant], ...scenario.body }),
    callers,
    background,
    span:
      requestsEach === null
        ? { kind: 'time', warmUpMs, measureMs }
        : { kind: 'work', requests: callers * requestsEach },
    expects: scenario.expects,
    // Include processes that this run does not need, so that they are not counted as others.
    pids: { ...(vendor === null ? {} : { vendor: stack.vendors[vendor].pid }), ...stack.pids },
  };
}
