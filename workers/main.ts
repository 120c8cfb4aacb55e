import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { answerQuestions } from '../shared/platform/child-processes/process-questions.ts';
import { queueNames, type QueueName } from '../shared/work/queue/job-kinds.ts';
import { ConfigError } from '../shared/platform/runtime/config-error.ts';
import { loadConfig, readLogFormat } from '../shared/platform/config/config.ts';
import { runProcess } from '../shared/platform/runtime/lifecycle.ts';
import { createLogger } from '../shared/platform/runtime/logger.ts';
import { watchPauses } from '../shared/platform/runtime/watch-pauses.ts';
import type { WorkerOptions } from './worker.ts';

/** Interactive chats mostly wait on sockets, so they are cheap. Vendors' limits apply long before this one. */
const defaultConcurrency = 8_192;

function readOptions(args: string[]): WorkerOptions {
  let values: { queues?: string; concurrency?: string; 'health-file'?: string };
  try {
    ({ values } = parseArgs({
      args,
      options: {
        queues: { type: 'string' },
        concurrency: { type: 'string' },
        'health-file': { type: 'string' },
      },
    }));
  } catch (error) {
    throw new ConfigError(
      `${(error as Error).message}\nUsage: npm run worker -- [--queues chat,image,embedding] [--concurrency 64] [--health-file /tmp/worker-health]`,
    );
  }
  const queues = (values.queues ?? queueNames.join(',')).split(',').map((name) => name.trim());
  const unknown = queues.filter((name) => !(queueNames as readonly string[]).includes(name));
  if (unknown.length > 0) {
    throw new ConfigError(
      `--queues: unknown queue ${unknown.join(', ')}; must be one of ${queueNames.join(', ')}.`,
    );
  }
  const concurrency = Number(values.concurrency ?? defaultConcurrency);
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new ConfigError('--concurrency must be an integer of at least 1.');
  }
  const healthFile = values['health-file'];
  return {
    queues: [...new Set(queues)] as QueueName[],
    concurrency,
    reportsSetup: true,
    ...(healthFile === undefined ? {} : { healthFile: resolve(healthFile) }),
  };
}

const start = async () => {
  const options = readOptions(process.argv.slice(2));
  const config = loadConfig(process.env);
  const log = createLogger('worker', config.logLevel, config.logFormat);
  watchPauses(log);
  // Node opens all modules of one import at the same time. Importing them in stages lets the process start with a limit of
  // 256 open files.
  await import('../shared/stores/open-stores.ts');
  await import('./routing/upstream-pool.ts');
  await import('./job-deps.ts');
  await import('./start-durable-jobs.ts');
  const { startWorker } = await import('./worker.ts');
  const running = await startWorker(config, process.env, log, options);
  // If several workers run, `npm start` asks each of them.
  answerQuestions(process, { state: () => running.state(), metrics: () => running.metrics.readJson() });
  return { running, log };
};

await runProcess('worker', start, { logFormat: readLogFormat(process.env) });
