// decision 0094
// Runs several api processes on one port: `node dist/scripts/start/api-processes.js --processes 4`. This process only
// accepts connections, and hands each to the process whose turn it is.
import type { ChildProcess, ChildProcessWithoutNullStreams } from 'node:child_process';
import cluster from 'node:cluster';
import { isatty } from 'node:tty';
import { loadConfig, type Config } from '../../shared/platform/config/config.ts';
import { GroupMetrics } from '../processes/group-metrics.ts';
import { answerQuestions } from '../../shared/platform/child-processes/process-questions.ts';
import { runProcess, type Running } from '../../shared/platform/runtime/lifecycle.ts';
import {
  createLogger,
  writeLogLines,
  type LogFormat,
  type Logger,
} from '../../shared/platform/runtime/logger.ts';
import { LineSplitter } from './line-splitter.ts';
import { returnLostConnections } from './lost-connections.ts';
import { checkPort } from './loopback.ts';
import { dist } from './paths.ts';
import { roleFlags } from './role-flags.ts';
import { readApiOptions } from './start-options.ts';
import { SupervisedPart, type PartEvents, type PartSpec } from './supervise.ts';

/** A little longer than a process takes at most. */
const stopTimeoutMs = 28_000;

await runProcess('api', async () => {
  const { processes } = readApiOptions(process.argv.slice(2));
  const config = loadConfig(process.env);
  const log = createLogger('api', config.logLevel, config.logFormat);
  return { running: await startProcesses(processes, config, log), log };
});

async function startProcesses(count: number, config: Config, log: Logger): Promise<Running> {
  // The processes would fail and be restarted forever. A free port is chosen when the first of them listens.
  if (config.port !== 0) await checkPort(config.host, config.port);
  // In turns: a process that accepts for itself would often get most of the connections.
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({
    exec: dist('api/main.js'),
    execArgv: [...new Set([...roleFlags, ...process.execArgv])],
    args: [],
    silent: true,
  });
  const metrics = new GroupMetrics('api');
  // Their output is a pipe, and is passed on to this process's.
  const logFormat = config.logFormat ?? (isatty(1) ? 'pretty' : 'json');
  const parts = Array.from({ length: count }, (_, i) => {
    const name = `api ${i + 1}`;
    return new SupervisedPart(describePart(name, metrics, logFormat), createEvents(name, log));
  });
  await Promise.all(parts.map((part) => part.start()));
  log.info({ processes: count }, 'api processes started');
  return {
    async stop() {
      await Promise.all(parts.map((part) => part.stop()));
    },
  };
}

function describePart(name: string, metrics: GroupMetrics, logFormat: LogFormat): PartSpec {
  return {
    name,
    stopTimeoutMs,
    // Redis may start later.
    firstStart: 'retry',
    launch: () => ({ file: process.execPath, args: [] }),
    spawn: () => forkProcess(logFormat),
    onSpawned(child: ChildProcess) {
      metrics.add(child);
      answerQuestions(child, { 'group-metrics': () => metrics.write() });
    },
  };
}

function forkProcess(logFormat: LogFormat): ChildProcessWithoutNullStreams {
  const worker = cluster.fork({ LOG_FORMAT: logFormat });
  // An error is also one of the process, which is restarted.
  worker.on('error', () => undefined);
  const child = worker.process as ChildProcessWithoutNullStreams;
  if ((child as Partial<typeof child>).stdin === undefined)
    throw new Error('an api process cannot be started: too many open files');
  child.stdin.on('error', () => undefined);
  child.stdin.end();
  returnLostConnections(child);
  return child;
}

function createEvents(name: string, log: Logger): PartEvents {
  let lines = new LineSplitter(writeLogLines);
  return {
    onOutput(chunk, stream) {
      if (stream === 'stdout') lines.add(chunk);
      else process.stderr.write(chunk);
    },
    onSpawned: () => undefined,
    onGone() {
      lines.end();
      lines = new LineSplitter(writeLogLines);
    },
    onRestarted: () => undefined,
    onDied: ({ code, signal, reason, restartInMs }) =>
      log.warn(
        {
          process: name,
          ...(signal === null ? { code } : { signal }),
          ...(reason === '' ? {} : { reason }),
          restartInMs,
        },
        'api process stopped; restarting',
      ),
  };
}
