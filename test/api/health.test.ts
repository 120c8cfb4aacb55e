import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import test from 'ava';
import { productVersion } from '../../shared/platform/runtime/product-version.ts';
import { captureLog, type LogLine } from '../support/captured-log.ts';
import { testWithOwnStore } from '../support/own-stores.ts';
import { useStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** The health check reports which services work, and responds even if none does. */

interface Health {
  readonly status: string;
  readonly version: string;
  readonly checks: Readonly<Record<string, string>>;
}

async function readHealth({ url }: TestStack): Promise<{ status: number; body: Health }> {
  const response = await fetch(`${url}/v1/health`);
  return { status: response.status, body: (await response.json()) as Health };
}

test('a healthy service is ok and reports its version', async (t) => {
  const stack = await useStack(t);
  const { status, body } = await waitFor('the bucket to be created', async () => {
    const health = await readHealth(stack);
    return health.body.status === 'ok' && health;
  });
  t.is(status, 200);
  t.deepEqual(Object.keys(body).sort(), ['checks', 'status', 'version']);
  t.is(body.version, productVersion);
  t.deepEqual(body.checks, {
    redis: 'ok',
    mongodb: 'ok',
    s3: 'ok',
    workers: 'ok',
    ledger: 'ok',
    redis_memory: 'ok',
    upstreams: 'ok',
  });
});

test('without workers the service is degraded, not down', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { status, body } = await readHealth(stack);
  t.is(status, 200);
  t.is(body.status, 'degraded');
  t.is(body.checks['workers'], 'down');
  t.is(body.checks['redis'], 'ok');
});

test('for a monitor, a service without workers is down until each queue has one', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const read = async (query: string): Promise<number> =>
    (await fetch(`${stack.url}/v1/health?${query}`)).status;
  t.is(await read('strict'), 503);
  t.is(await read('strict=true'), 503);
  t.is(await read('strict=false'), 200);
  t.is(await read('strict=yes'), 422);
  t.is(await read('strict&strict'), 422);
  t.is(await read('stricter'), 200);
  const response = await fetch(`${stack.url}/v1/health?strict`);
  t.like(await response.json(), { status: 'degraded', checks: { workers: 'down' } });
  await stack.startWorker({ queues: ['chat', 'image'] });
  await waitFor('a worker to be noticed', async () => {
    const { body } = await readHealth(stack);
    return body.checks['s3'] === 'ok';
  });
  t.is(await read('strict'), 503);
  await stack.startWorker();
  await waitFor('all queues to be served', async () => (await read('strict')) === 200);
});

testWithOwnStore('Redis')(
  'if the workers lose a Redis permission, one log line says what to do, and the service is degraded until the permission is back',
  async (t) => {
    const { log, lines } = captureLog();
    const stack = await useStack(t, { log });
    const { apiKey } = await stack.createAccount();
    // Workers wait for the ready queue with this command, which nothing else uses.
    await stack.redis.call('ACL', 'SETUSER', 'default', '-blmpop');
    const takingChats = (): LogLine[] => lines.filter(({ part }) => part === 'taking chats');
    const { status, body } = await waitFor('the health check to notice', async () => {
      const health = await readHealth(stack);
      return health.body.checks['workers'] === 'down' && health;
    });
    t.is(status, 200);
    t.is(body.status, 'degraded');
    const [first] = takingChats();
    t.is(first!['level'], 50);
    t.regex(
      String(first!['msg']),
      /^taking chats fails until this is fixed: The user in REDIS_URL lacks a permission .*docs\/deployment\.md.*NOPERM.*blmpop/,
    );
    await stack.redis.call('ACL', 'SETUSER', 'default', '+blmpop');
    await waitFor('the health check to be ok', async () => (await readHealth(stack)).body.status === 'ok');
    t.deepEqual(
      takingChats().map(({ msg }) => msg),
      [first!['msg'], 'taking chats works again'],
    );
    const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'hello' }] };
    t.is((await stack.post('/v1/chat/completions', apiKey, chat)).status, 200);
  },
);

testWithOwnStore('MongoDB')('without MongoDB the service is degraded within seconds', async (t) => {
  const stack = await useStack(t);
  await stack.stopMongo();
  const { status, body } = await waitFor('the health check to notice', async () => {
    const health = await readHealth(stack);
    return health.body.checks['mongodb'] === 'down' && health;
  });
  t.is(status, 200);
  t.is(body.status, 'degraded');
  t.is(body.checks['redis'], 'ok');
});

testWithOwnStore('Redis')(
  'without Redis the service is down with a 503, and requests are rejected with retry-after',
  async (t) => {
    const stack = await useStack(t);
    const { apiKey } = await stack.createAccount();
    // The stack cannot be stopped while its worker waits for Redis.
    t.teardown(() => stack.restartRedis());
    await stack.killRedis();
    const { status, body } = await waitFor('the health check to notice', async () => {
      const health = await readHealth(stack);
      return health.status === 503 && health;
    });
    t.is(status, 503);
    t.is(body.status, 'down');
    t.is(body.checks['redis'], 'down');
    const rejection = await stack.post('/v1/embeddings', apiKey, { model: 'use-lite-en-512', input: 'cat' });
    t.is(rejection.status, 503);
    t.true(Number(rejection.headers.get('retry-after')) > 0);
    t.like(await rejection.json(), { error: { code: 'service_unavailable' } });
  },
);

test('a store that does not respond is reported as down, and concurrent health requests share one check of it', async (t) => {
  let connections = 0;
  const silent = createServer((socket) => {
    connections += 1;
    t.teardown(() => socket.destroy());
  }).listen(0, '127.0.0.1');
  t.teardown(() => silent.close());
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  // Without workers, because they would call the store to create their bucket.
  const stack = await useStack(t, { workers: [], env: { S3_ENDPOINT: `http://127.0.0.1:${port}` } });
  const results = await Promise.all(Array.from({ length: 20 }, () => readHealth(stack)));
  for (const { body } of results) {
    t.is(body.checks['s3'], 'down');
    t.is(body.checks['mongodb'], 'ok');
  }
  t.is(connections, 1);
});
