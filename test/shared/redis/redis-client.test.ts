import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { mock } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { createRedis, type RedisClient } from '../../../shared/redis/redis-client.ts';
import { createLogger, type Logger } from '../../../shared/runtime/logger.ts';
import { useRedis } from '../../support/use-redis.ts';
import { waitFor } from '../../support/wait-for.ts';

const redis = useRedis(test);

interface Rig {
  readonly subscriber: RedisClient;
  /** Errors, as its log has them. */
  readonly errors: readonly string[];
}

async function subscribe(t: ExecutionContext, url: string, channel: string): Promise<Rig> {
  const errors: string[] = [];
  const ignore = (): void => undefined;
  const log = { warn: ignore, info: ignore, error: (_: object, text: string) => errors.push(text) };
  const subscriber = createRedis(url, 'subscriber', log as unknown as Logger);
  t.teardown(() => subscriber.disconnect());
  await subscriber.subscribe(channel);
  return { subscriber, errors };
}

const subscribed = '*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n';

/**
 * Says of itself what ioredis asks for, and answers subscriptions as it is told to.
 * @param onSubscribe what it writes, by the number of the connection, of which the first is 1; null refuses all commands
 */
async function startFakeRedis(
  t: ExecutionContext,
  onSubscribe: (connection: number) => string | null,
): Promise<string> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    const reply = onSubscribe(connections);
    socket.on('error', () => undefined);
    const answer = (command: string): string => {
      if (reply === null) return '-ERR max number of clients reached\r\n';
      if (/\binfo\r\n/.test(command)) return '$21\r\nredis_version:7.4.0\r\n\r\n';
      return command.includes('subscribe') ? reply : '+OK\r\n';
    };
    socket.on('data', (data) => {
      const commands = data
        .toString()
        .split(/^\*\d+\r\n/m)
        .slice(1);
      socket.write(commands.map(answer).join(''));
    });
  });
  t.teardown(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.serial('a command fails without any time passing while Redis is away', async (t) => {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  // No timer ends: neither the wait for a reconnect nor the longest time of a command.
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  for (const purpose of ['commands', 'payloads'] as const) {
    const client = createRedis(`redis://127.0.0.1:${port}`, purpose, createLogger('test', 'silent'));
    t.teardown(() => client.disconnect());
    await new Promise((resolve) => client.once('reconnecting', resolve));
    await t.throwsAsync(client.get('key'), undefined, purpose);
  }
});

test('a subscriber may be closed while it subscribes again after a cut: its rejection ends nothing', async (t) => {
  const url = await startFakeRedis(t, (connection) => (connection === 1 ? subscribed : ''));
  const { subscriber, errors } = await subscribe(t, url, 'news');
  const rejections: unknown[] = [];
  const note = (reason: unknown): unknown => rejections.push(reason);
  process.on('unhandledRejection', note);
  t.teardown(() => process.off('unhandledRejection', note));
  const ended = once(subscriber, 'end');
  subscriber.once('ready', () => subscriber.disconnect());
  subscriber.disconnect(true);
  await ended;
  await nextTurn();
  t.deepEqual(rejections, []);
  t.deepEqual(errors, []);
});

test('a subscriber that Redis refuses after a cut says so, and asks again until it hears', async (t) => {
  const commands = redis();
  const { host, port } = commands.options as { host: string; port: number };
  const { subscriber, errors } = await subscribe(t, `redis://${host}:${port}`, 'news');
  const heard: string[] = [];
  subscriber.on('message', (_, message: string) => heard.push(message));
  await commands.call('ACL', 'SETUSER', 'default', 'resetchannels');
  subscriber.disconnect(true);
  await waitFor('the refusal', () => errors.length > 0);
  t.is(errors[0], 'subscribing failed; reconnecting');
  await commands.call('ACL', 'SETUSER', 'default', 'allchannels');
  await waitFor('a listener', async () => (await commands.publish('news', 'hello')) === 1);
  await waitFor('the message', () => heard.includes('hello'));
});

test('a subscriber that was refused asks again also where the next connections fail before they are ready', async (t) => {
  const replies = [subscribed, '-NOPERM no channels\r\n', null, null];
  const message = '>3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n';
  const url = await startFakeRedis(t, (connection) => {
    const reply = replies[connection - 1];
    return reply === undefined ? subscribed + message : reply;
  });
  const { subscriber } = await subscribe(t, url, 'news');
  const heard = new Promise((resolve) => subscriber.once('message', (_, text: string) => resolve(text)));
  subscriber.disconnect(true);
  t.is(await heard, 'hello');
});
