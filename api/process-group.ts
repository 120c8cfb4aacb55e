// decision 0094
import cluster from 'node:cluster';
import { AppError } from '../shared/contract/errors.ts';
import { answerQuestions, ProcessQuestions } from '../shared/platform/child-processes/process-questions.ts';
import type { ProcessMetrics } from '../shared/platform/metrics/process-metrics.ts';

/** Longer than the first process waits for the others. */
const metricsTimeoutMs = 4_000;

/** The api processes that share the port of this one, and the process that started them. */
export interface ProcessGroup {
  /** Lets the group read the metrics of this process. */
  shareMetrics(metrics: ProcessMetrics): void;
  /**
   * The metrics of all processes of the group, in Prometheus's text format.
   * @throws AppError `service_unavailable`
   */
  writeMetrics(): Promise<string>;
}

/** Joins the group of `api-processes`, if it started this process. Otherwise returns null. */
export function joinProcessGroup(): ProcessGroup | null {
  const { worker } = cluster;
  if (worker === undefined) return null;
  // Node would exit at once when the first process is gone. This one first finishes its requests.
  worker.exitedAfterDisconnect = true;
  let isStopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => (isStopping = true));
  process.once('disconnect', () => {
    // A second signal would end it at once.
    if (!isStopping) process.kill(process.pid, 'SIGTERM');
  });
  const questions = new ProcessQuestions(process);
  return {
    shareMetrics: (metrics) => answerQuestions(process, { metrics: () => metrics.readJson() }),
    async writeMetrics() {
      const text = await questions.ask('group-metrics', metricsTimeoutMs);
      if (typeof text !== 'string')
        throw new AppError('service_unavailable', {
          message: 'The metrics of all processes cannot be read now.',
        });
      return text;
    },
  };
}
