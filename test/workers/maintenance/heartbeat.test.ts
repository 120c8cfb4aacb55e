import { execFile } from 'node:child_process';
import { mkdtemp, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../shared/platform/redis/redis-client.ts';
import { ConfigError } from '../../../shared/platform/runtime/config-error.ts';
import type { Running } from '../../../shared/platform/runtime/lifecycle.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { ActiveRuns } from '../../../workers/intake/active-runs.ts';
import { findHealthProblem } from '../../../workers/maintenance/health-file.ts';
import { startHeartbeat } from '../../../workers/maintenance/heartbeat.ts';
import { captureLog } from '../../support/captured-log.ts';
import { startTestRedis } from '../../support/redis.ts';
import { waitFor } from '../../support/wait-for.ts';
import { liveness } from '../../../shared/platform/redis/liveness.ts';

const run = promisify(execFile);

async function useFolder(t: ExecutionContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-health-'));
  t.teardown(() => rm(dir, { recursive: true }));
  return dir;
}

const beat = (redis: RedisClient, healthFile: string, log: Logger): Promise<Running> =>
  startHeartbeat({
    redis,
    runsByQueue: new Map([['chat', new ActiveRuns()]]),
    taking: { isTaking: () => true },
    concurrency: 1,
    embeddings: { waiting: 0 },
    faults: { count: 0 },
    endedWork: { perMinute: () => 0 },
    countHeld: () => new Map(),
    workerId: 'worker',
    healthFile,
    log,
  });

/** Runs the health check of a container. */
async function check(...args: string[]): Promise<{ code: number; stderr: string }> {
  try {
    const { stderr } = await run(process.execPath, ['dist/workers/health.js', ...args]);
    return { code: 0, stderr };
  } catch (error) {
    return error as { code: number; stderr: string };
  }
}

test('a worker is healthy while Redis accepts its heartbeats, and unhealthy once Redis is down or the worker has stopped', async (t) => {
  const healthFile = join(await useFolder(t), 'health');
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const { log, waitForLine } = captureLog('debug');
  const redis = createRedis(server.url, 'commands', log);
  t.teardown(() => redis.disconnect());
  await waitUntilReady(redis);
  t.is((await check(healthFile)).code, 1);

  const heartbeat = await beat(redis, healthFile, log);
  t.deepEqual(await check(healthFile), { code: 0, stderr: '' });
  await utimes(healthFile, 1, 1);
  await waitFor('the next heartbeat', async () => (await stat(healthFile)).mtimeMs > 1_000);

  await server.stop();
  await waitForLine(({ msg }) => msg === 'heartbeat failed');
  const lastMs = (await stat(healthFile)).mtimeMs;
  t.is(await findHealthProblem(healthFile, lastMs + liveness.worker.deadMs), null);
  t.regex(
    (await findHealthProblem(healthFile, lastMs + liveness.worker.deadMs + 1)) ?? '',
    /last accepted a heartbeat/,
  );

  await heartbeat.stop();
  const { code, stderr } = await check(healthFile);
  t.is(code, 1);
  t.regex(
    stderr,
    /health cannot be read: there is no such file or folder\. Is a worker running with --health-file/,
  );
});

test('a worker is unhealthy if none of its heartbeats reached Redis, or if its last heartbeat is in the future', async (t) => {
  const healthFile = join(await useFolder(t), 'health');
  const { log } = captureLog();
  // Nothing listens on this port.
  const redis = createRedis('redis://127.0.0.1:1', 'commands', log);
  t.teardown(() => redis.disconnect());
  const heartbeat = await beat(redis, healthFile, log);
  t.teardown(() => heartbeat.stop());
  t.regex((await check(healthFile)).stderr, /^Redis has not accepted a heartbeat of this worker yet\.\n$/);
  const future = new Date(Date.now() + 3_600_000);
  await utimes(healthFile, future, future);
  t.not(await findHealthProblem(healthFile), null);
});

test('a health file that cannot be written is rejected at startup, and a health check without a file argument prints its usage', async (t) => {
  const { log } = captureLog();
  const redis = createRedis('redis://127.0.0.1:1', 'commands', log);
  t.teardown(() => redis.disconnect());
  const healthFile = join(await useFolder(t), 'none', 'health');
  const error = await t.throwsAsync(beat(redis, healthFile, log), {
    instanceOf: ConfigError,
  });
  t.regex(error.message, /^--health-file .*health cannot be written: there is no such file or folder\.$/);
  t.regex((await check()).stderr, /^Usage: /);
});
