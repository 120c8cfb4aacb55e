import type { Environment } from '../../shared/platform/config/config.ts';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { isLoopbackHost } from '../../shared/platform/runtime/address-class.ts';
import type { GroupMetrics } from '../processes/group-metrics.ts';
import { createLoggerTo } from '../../shared/platform/runtime/logger.ts';
import type { ConsoleOutput } from './console-output.ts';
import { workerPart } from './parts.ts';
import { readDemand } from './read-demand.ts';
import type { Stack } from './stack.ts';
import type { StartOptions } from './start-options.ts';

export interface WorkersOptions {
  readonly options: StartOptions;
  readonly values: Environment;
  readonly stack: Stack;
  /** Of the workers. */
  readonly env: NodeJS.ProcessEnv;
  readonly apiUrl: string;
  readonly output: ConsoleOutput;
}

/** The workers of `npm start`. */
export interface Workers {
  /** Starts those that always run. */
  start(): Promise<void>;
  /** Starts and stops others by demand, until the signal aborts. */
  scale(signal: AbortSignal): Promise<void>;
}

/**
 * Checks that this process may ask the api what waits for workers.
 * @throws ConfigError
 */
export function checkDemandAccess({ workers: { min, max } }: StartOptions, values: Environment): void {
  if (min === max || values.METRICS_TOKEN !== undefined) return;
  const isLocal = ['0.0.0.0', '::'].includes(values.HOST) || isLoopbackHost(values.HOST);
  if (isLocal && values.TRUST_PROXY === 'off') return;
  const setting = isLocal ? 'TRUST_PROXY=on' : `HOST ${values.HOST}`;
  throw new ConfigError(
    `--workers ${min}..${max} needs METRICS_TOKEN with ${setting}: the api says what waits only to those who have the token, or who connect from this machine.`,
  );
}

/** A single worker is one part like the others. Of several, this process also serves the metrics. */
export async function createWorkers(all: WorkersOptions): Promise<Workers> {
  const { options, values, stack, env, apiUrl, output } = all;
  const { workers, scaleUpAfterMs, scaleDownAfterMs } = options;
  if (workers.max === 1) {
    return {
      async start() {
        await stack.run(workerPart({ name: 'worker', env, hasChannel: false }), 0);
      },
      scale: () => Promise.resolve(),
    };
  }
  // Import it only here, so that the supervisor usually runs without the library for metrics.
  const { WorkerPool } = await import('./worker-pool.ts');
  const { METRICS_PORT: port, METRICS_TOKEN: token = null } = values;
  const workerEnv = { ...env, METRICS_PORT: '' };
  const pool = new WorkerPool({
    ...workers,
    upAfterMs: scaleUpAfterMs,
    downAfterMs: scaleDownAfterMs,
    run: (name, onSpawned) =>
      stack.run({ ...workerPart({ name, env: workerEnv, hasChannel: true }), onSpawned }, 0),
    readDemand: () => readDemand(apiUrl, token),
    output,
  });
  return {
    async start() {
      if (port !== undefined) await serveMetrics(pool, port, values, output);
      await pool.start();
    },
    scale: (signal) => pool.scale(signal),
  };
}

/** @throws ConfigError if the port cannot be used */
async function serveMetrics(
  pool: { readonly metrics: GroupMetrics; isReady(): Promise<boolean> },
  port: number,
  values: Environment,
  output: ConsoleOutput,
): Promise<void> {
  const { startOperatorServer } = await import('../../shared/operator/operator-server.ts');
  const log = createLoggerTo(
    (line) => output.printLog('workers', Buffer.from(line)),
    'start',
    values.LOG_LEVEL,
  );
  const server = await startOperatorServer({
    config: {
      host: values.HOST,
      metricsToken: values.METRICS_TOKEN ?? null,
      trustProxy: values.TRUST_PROXY === 'on',
    },
    port,
    metrics: pool.metrics,
    isReady: () => pool.isReady(),
    log,
  });
  output.printPart('metrics', `of all workers: ${server.url}/metrics`, null);
}
