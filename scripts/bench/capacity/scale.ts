import type { LoadResult } from '../load-plan.ts';
import { runLoad } from '../run-load.ts';
import { readProcessCpuMs } from '../cpu-clock.ts';
import { chatPlan, instant, instantPace, startCapacityStack } from './capacity-stack.ts';
import { formatTable, listLoadFaults, type CapacityResult, type CapacityRun } from './report.ts';

/** All together, split among the api processes. */
const callers = 64;

interface Size {
  readonly apis: number;
  readonly workers: number;
}

interface SizeResult extends Size {
  readonly requestsPerSecond: number;
  /** CPU milliseconds per request of all processes of a role. */
  readonly apiMs: number;
  readonly workerMs: number;
  /** The mean of the load processes' medians. */
  readonly p50Ms: number;
}

/**
 * The same load of chats on one and two api processes and workers. They share the machine's cores with each other, with
 * the stores and with the load, so what a further process adds shows in the CPU time per request as much as in the rate.
 */
export async function measureScale(run: CapacityRun): Promise<CapacityResult> {
  const { programs, options, onProgress } = run;
  const stack = await startCapacityStack(run);
  const faults: string[] = [];
  const results: SizeResult[] = [];
  const targets = [stack.gateway];
  const apiPids = [stack.pids.api];
  const workers: { readonly pid: number }[] = [{ pid: stack.pids.worker }];

  const measure = async ({ apis, workers: workerCount }: Size): Promise<void> => {
    onProgress(`${apis} api, ${workerCount} worker`);
    const startedAt = new Date();
    const cpuOf = (pids: readonly number[]): number =>
      pids.reduce((sum, pid) => sum + readProcessCpuMs(pid), 0);
    const workerPids = workers.slice(0, workerCount).map(({ pid }) => pid);
    const before = { api: cpuOf(apiPids), worker: cpuOf(workerPids) };
    const loads = await Promise.all(
      targets.slice(0, apis).map((target) =>
        runLoad(programs, {
          ...target,
          ...chatPlan(instant, false),
          callers: callers / apis,
          span: { kind: 'time', warmUpMs: options.warmUpMs, measureMs: options.measureMs },
          expects: { kind: 'chat', tokens: instantPace.tokens },
          pids: {},
        }),
      ),
    );
    const sum = (read: (load: LoadResult) => number): number =>
      loads.reduce((total, load) => total + read(load), 0);
    const answers = sum(({ allAnswers }) => allAnswers);
    const money = await stack.money.check(startedAt, answers);
    faults.push(...loads.flatMap(listLoadFaults), ...money.faults);
    results.push({
      apis,
      workers: workerCount,
      requestsPerSecond: sum((load) => (load.answers * 1_000) / load.measuredMs),
      apiMs: (cpuOf(apiPids) - before.api) / Math.max(1, answers),
      workerMs: (cpuOf(workerPids) - before.worker) / Math.max(1, answers),
      p50Ms: sum(({ p50Ms }) => p50Ms) / loads.length,
    });
  };

  try {
    await stack.warmUp();
    await measure({ apis: 1, workers: 1 });
    const further = await stack.startWorker();
    workers.push(further);
    await measure({ apis: 1, workers: 2 });
    const api = await stack.startApi();
    targets.push(api.target);
    apiPids.push(api.program.pid);
    await measure({ apis: 2, workers: 2 });
    await programs.stopOne(further);
    await measure({ apis: 2, workers: 1 });
    return {
      lines: formatTable(
        ['', 'requests/s', 'p50 ms', 'api CPU ms', 'worker CPU ms', 'both'],
        results.map(({ apis, workers: count, requestsPerSecond, p50Ms, apiMs, workerMs }) => [
          `${apis} api, ${count} worker`,
          Math.round(requestsPerSecond).toString(),
          p50Ms.toFixed(1),
          apiMs.toFixed(3),
          workerMs.toFixed(3),
          (apiMs + workerMs).toFixed(3),
        ]),
      ),
      values: { results },
      faults,
    };
  } finally {
    await stack.close();
  }
}
