import type { Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { createRedis, waitUntilReady } from '../../../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { startRedisProxy } from '../../../support/store-proxies.ts';
import { openTestRedis } from '../../../support/stores.ts';
import { waitFor } from '../../../support/wait-for.ts';

/** A client of the purpose `commands`, behind a proxy. */
async function useClient(t: ExecutionContext) {
  const server = await openTestRedis();
  t.teardown(() => server.close());
  const { proxy, url } = await startRedisProxy(server.url);
  t.teardown(() => proxy.close());
  const client = createRedis(url, 'commands', createLogger('test', 'silent'));
  t.teardown(() => client.disconnect());
  await waitUntilReady(client);
  return { client, proxy };
}

test('the commands of one event loop turn are written together, in order', async (t) => {
  const { client } = await useClient(t);
  const stream = (client as unknown as { stream: Socket }).stream;
  const writes: number[] = [];
  const writev = stream._writev!.bind(stream);
  stream._writev = (chunks, callback) => {
    writes.push(chunks.length);
    writev(chunks, callback);
  };
  const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => client.rpush('list', i)));
  t.deepEqual(
    replies,
    Array.from({ length: 20 }, (_, i) => i + 1),
  );
  t.deepEqual(writes, [20]);
});

test('a command is sent even if earlier ones have no reply yet', async (t) => {
  const { client, proxy } = await useClient(t);
  proxy.hold();
  const first = client.get('first');
  await waitFor('the first command', () => proxy.countSent('first') > 0);
  const second = client.get('second');
  await waitFor('the second command', () => proxy.countSent('second') > 0);
  proxy.release();
  t.deepEqual(await Promise.all([first, second]), [null, null]);
});

test('commands that are not written yet fail when the connection is lost, and later ones use the next connection', async (t) => {
  const { client, proxy } = await useClient(t);
  proxy.hold();
  const lost = t.throwsAsync(client.get('lost'));
  proxy.cut();
  await lost;
  proxy.release();
  await waitUntilReady(client);
  t.is(await client.set('key', 'value'), 'OK');
  t.is(await client.get('key'), 'value');
});
