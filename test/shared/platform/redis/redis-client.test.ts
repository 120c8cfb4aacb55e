import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { mock } from 'node:test';
import test from 'ava';
import { createRedis } from '../../../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';

test.serial('a command fails immediately while Redis is unavailable', async (t) => {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  // With mocked timers, neither the reconnect nor the command timeout can make the command fail.
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  for (const purpose of ['commands', 'payloads'] as const) {
    const client = createRedis(`redis://127.0.0.1:${port}`, purpose, createLogger('test', 'silent'));
    t.teardown(() => client.disconnect());
    await new Promise((resolve) => client.once('reconnecting', resolve));
    await t.throwsAsync(client.get('key'), undefined, purpose);
  }
});
