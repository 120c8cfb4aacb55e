import type { BenchStack } from './bench-stack.ts';
import type { LoadPlan, LoadResult } from './load-plan.ts';
import type { MoneyCheck, MoneyResult } from './money-check.ts';
import type { Programs } from './programs.ts';
import { compareRedisUse, type RedisUse } from './redis-clock.ts';
import { runLoad } from './run-load.ts';
import { countCallers, type Scenario, type Variant } from './scenario.ts';

export interface RunResult extends LoadResult {
  readonly way: Variant;
  readonly requestsPerSecond: number;
  /** CPU milliseconds per response, including background responses, by process. */
  readonly cpuMsPerRequest: Readonly<Record<string, number>>;
  /** Share of all CPU time used by other processes, 0..1. */
  readonly othersShare: number;
  /** What Redis executed per response; only for runs through the gateway, like `money`. */
  readonly redisPerRequest: RedisUse | null;
  readonly money: MoneyResult | null;
}

export interface MeasureOptions {
  readonly programs: Programs;
  readonly stack: BenchStack;
  readonly money: MoneyCheck;
  readonly cpus: number;
  readonly callers: number | null;
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** Runs one scenario once, directly or through the gateway, with a new load generator. */
export async function measure(
  options: MeasureOptions,
  scenario: Scenario,
  variant: Variant,
): Promise<RunResult> {
  const { stack, programs, money, cpus } = options;
  const startedAt = new Date();
  const isGateway = variant === 'gateway';
  const redisBefore = isGateway ? await money.readRedisUse() : null;
  const load = await runLoad(programs, createPlan());
  const redisPerRequest =
    redisBefore === null ? null : compareRedisUse(redisBefore, await money.readRedisUse(), load.allAnswers);
  const entries = Object.entries(load.cpu.processes).map(([name, ms]) => [
    name,
    ms / Math.max(1, load.answers + load.backgroundAnswers),
  ]);
  return {
    ...load,
    way: variant,
    requestsPerSecond: (load.answers * 1_000) / load.measuredMs,
    cpuMsPerRequest: Object.fromEntries(entries) as Record<string, number>,
    othersShare: load.cpu.othersMs / (load.measuredMs * cpus),
    redisPerRequest,
    money: isGateway ? await money.check(startedAt, load.allAnswers) : null,
  };

  function createPlan(): LoadPlan {
    const { callers, warmUpMs, measureMs } = options;
    const { vendor, background, requestsEach } = scenario;
    const target = variant === 'direct' && vendor !== null ? stack.vendors[vendor] : stack.gateway;
    const count = countCallers(scenario, callers);
    return {
      ...target,
      path: `/v1${scenario.path}`,
      body: JSON.stringify({ model: scenario.models[variant], ...scenario.body }),
      callers: count,
      background,
      span:
        requestsEach === null
          ? { kind: 'time', warmUpMs, measureMs }
          : { kind: 'work', requests: count * requestsEach },
      expects: scenario.expects,
      // Include processes that this run does not need, so that they are not counted as others.
      pids: { ...(vendor === null ? {} : { vendor: stack.vendorPids[vendor] }), ...stack.pids },
    };
  }
}
