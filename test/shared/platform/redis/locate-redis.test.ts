import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { locateRedis } from '../../../../shared/platform/redis/locate-redis-client.ts';
import { ConfigError } from '../../../../shared/platform/runtime/config-error.ts';
import { endWithParent } from '../../../support/end-with-parent.ts';
import { findStablePort } from '../../../support/stable-port.ts';

/** Starts a redis-server. @returns its port */
async function startServer(t: ExecutionContext, ...args: string[]): Promise<number> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  await writeFile(join(dir, 'redis.conf'), '');
  const port = await findStablePort();
  const options = [
    join(dir, 'redis.conf'),
    ...args,
    '--port',
    `${port}`,
    '--bind',
    '127.0.0.1',
    '--dir',
    dir,
  ];
  const [program, ...rest] = endWithParent(['redis-server', ...options, '--save', '']);
  const child = spawn(program, rest, { stdio: 'ignore' });
  const exited = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exited;
    await rm(dir, { recursive: true, force: true });
  });
  return port;
}

async function assertRefused(t: ExecutionContext, port: number, reason: RegExp): Promise<void> {
  const error = await t.throwsAsync(locateRedis(`redis://127.0.0.1:${port}`, 1_000), {
    instanceOf: ConfigError,
  });
  t.regex(error.message, reason);
}

test('an unusable server is rejected, with one sentence that gives the reason', async (t) => {
  const sentinel = await startServer(t, '--sentinel');
  const replica = await startServer(t, '--replicaof', '127.0.0.1 1');
  const cluster = await startServer(
    t,
    '--cluster-enabled',
    'yes',
    '--cluster-port',
    `${await findStablePort()}`,
  );
  // Waits until the server has started and responds.
  t.is(await locateRedis(`redis://127.0.0.1:${sentinel}`).catch((error: Error) => error.name), 'ConfigError');
  await assertRefused(
    t,
    sentinel,
    /^REDIS_URL points to a Sentinel \(127\.0\.0\.1:\d+\)\. Specify the Redis server/,
  );
  await assertRefused(
    t,
    replica,
    /^Redis could not be used within 1 s \(it is a replica, which accepts no writes\)\./,
  );
  await assertRefused(t, cluster, /\(no node of its Cluster has slots\)/);
  const node = new Redis(cluster, '127.0.0.1');
  t.teardown(() => node.disconnect());
  await node.cluster('ADDSLOTSRANGE', 0, 16_383);
  // The node does not know its own address.
  await assertRefused(
    t,
    cluster,
    /\(its Cluster does not report the address of its node at port \d+; set cluster-announce-ip /,
  );
  await node.config('SET', 'cluster-announce-ip', '127.0.0.1');
  const url = `redis://127.0.0.1:${cluster}`;
  t.is(await locateRedis(url), `${url},${url}`);
});
