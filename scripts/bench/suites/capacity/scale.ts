import { readProcessCpuMs } from '../../harness/clocks/cpu-clock.ts';
import { runLoad } from '../../harness/load/run-load.ts';
import { listErrors, sum } from '../../harness/statistics.ts';
import { Table } from '../../harness/table.ts';
import type { CapacityResult, CapacityRun } from './capacity-scenario.ts';
import { chatPlan, instant, instantPace, startCapacityStack } from './capacity-stack.ts';

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

const table = new Table<SizeResult>([
  { title: '', width: 15, cell: ({ apis, workers }) => `${apis} api, ${workers} worker` },
  { title: 'requests/s', cell: ({ requestsPerSecond }) => Math.round(requestsPerSecond).toString() },
  { title: 'p50 ms', width: 8, cell: ({ p50Ms }) => p50Ms.toFixed(1) },
  { title: 'api CPU ms', cell: ({ apiMs }) => apiMs.toFixed(3) },
  { title: 'worker CPU ms', cell: ({ workerMs }) => workerMs.toFixed(3) },
  { title: 'both', width: 8, cell: ({ apiMs, workerMs }) => (apiMs + workerMs).toFixed(3) },
]);

/**
 * The same load of chats on one and two api processes and workers. They share the machine's cores with each other, with
 * the stores and with the load, so what a further process adds shows in the CPU time per request as much as in the rate.
 */
export async function measureScale(run: CapacityRun): Promise<CapacityResult> {
  const { programs, settings, onProgress } = run;
  const stack = await startCapacityStack(run);
  const faults: string[] = [];
  const results: SizeResult[] = [];
  const targets = [stack.gateway];
  const apiPids = [stack.pids.api];
  const workers: { readonly pid: number }[] = [{ pid: stack.pids.worker }];

  const measure = async ({ apis, workers: workerCount }: Size): Promise<void> => {
    onProgress(`${apis} api, ${workerCount} worker`);
    const startedAt = new Date();
    const cpuOf = (pids: readonly number[]): number => sum(pids.map(readProcessCpuMs));
    const workerPids = workers.slice(0, workerCount).map(({ pid }) => pid);
    const before = { api: cpuOf(apiPids), worker: cpuOf(workerPids) };
    const loads = await Promise.all(
      targets.slice(0, apis).map((target) =>
        runLoad(programs, {
          ...target,
          ...chatPlan(instant, instantPace),
          callers: callers / apis,
          span: { kind: 'time', warmUpMs: settings.warmUpMs, measureMs: settings.measureMs },
          pids: {},
        }),
      ),
    );
    const total = (name: 'allAnswers' | 'requestsPerSecond' | 'p50Ms'): number =>
      sum(loads.map((load) => load[name]));
    const answers = total('allAnswers');
    const money = await stack.money.check(startedAt, answers);
    faults.push(...loads.flatMap(({ errors }) => listErrors(errors)), ...money.faults);
    results.push({
      apis,
      workers: workerCount,
      requestsPerSecond: total('requestsPerSecond'),
      apiMs: (cpuOf(apiPids) - before.api) / Math.max(1, answers),
      workerMs: (cpuOf(workerPids) - before.worker) / Math.max(1, answers),
      p50Ms: total('p50Ms') / loads.length,
    });
  };

  await stack.warmUp();
  await measure({ apis: 1, workers: 1 });
  const further = await stack.addWorker();
  workers.push(further);
  await measure({ apis: 1, workers: 2 });
  const api = await stack.startApi();
  targets.push(api.target);
  apiPids.push(api.program.pid);
  await measure({ apis: 2, workers: 2 });
  await programs.stopOne(further);
  await measure({ apis: 2, workers: 1 });
  return { lines: table.format(results), values: { results }, faults };
}
