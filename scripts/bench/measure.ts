import type { BenchStack } from './bench-stack.ts';
import type { LoadPlan, LoadResult } from './load-plan.ts';
import type { MoneyCheck, MoneyResult } from './money-check.ts';
import type { Programs } from './programs.ts';
import { runLoad } from './run-load.ts';
import { countCallers, type Scenario, type Way } from './scenario.ts';

export interface RunResult extends LoadResult {
  readonly way: Way;
  readonly requestsPerSecond: number;
  /** Milliseconds of CPU for each answer, those of the background among them, by process. */
  readonly cpuMsPerRequest: Readonly<Record<string, number>>;
  /** CPU time that others used of all there was, 0..1. */
  readonly othersShare: number;
  /** Of runs through the gateway. */
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

/** One run of one scenario, by one way, with a load generator made for it. */
export async function measure(options: MeasureOptions, scenario: Scenario, way: Way): Promise<RunResult> {
  const { stack, programs, money, cpus } = options;
  const startedAt = new Date();
  const load = await runLoad(programs, makePlan(options, scenario, way));
  const entries = Object.entries(load.cpu.processes).map(([name, ms]) => [
    name,
    ms / Math.max(1, load.answers + load.backgroundAnswers),
  ]);
  return {
    ...load,
    way,
    requestsPerSecond: (load.answers * 1_000) / load.measuredMs,
    cpuMsPerRequest: Object.fromEntries(entries) as Record<string, number>,
    othersShare: load.cpu.othersMs / (load.measuredMs * cpus),
    money: way === 'gateway' ? await money.check(startedAt, load.allAnswers) : null,
  };

  function makePlan({ callers, warmUpMs, measureMs }: MeasureOptions, of: Scenario, to: Way): LoadPlan {
    const { vendor, background, requestsEach } = of;
    const target = to === 'direct' && vendor !== null ? stack.vendors[vendor] : stack.gateway;
    const count = countCallers(of, callers);
    return {
      ...target,
      path: `/v1${of.path}`,
      body: JSON.stringify({ model: of.models[to], ...of.body }),
      callers: count,
      background,
      span:
        requestsEach === null
          ? { kind: 'time', warmUpMs, measureMs }
          : { kind: 'work', requests: count * requestsEach },
      expects: of.expects,
      // Those that a way does not need are told apart from what others of this machine do.
      pids: { ...(vendor === null ? {} : { vendor: stack.vendorPids[vendor] }), ...stack.pids },
    };
  }
}
