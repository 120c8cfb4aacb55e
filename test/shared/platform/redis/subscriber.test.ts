import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Subscriber } from '../../../../shared/platform/redis/subscriber-client.ts';
import { ConfigError } from '../../../../shared/platform/runtime/config-error.ts';
import { createRedis, waitUntilReady } from '../../../../shared/platform/redis/redis-client.ts';
import { createLogger, type Logger } from '../../../../shared/platform/runtime/logger.ts';
import { startTestRedis } from '../../../support/redis.ts';
import { useRedis } from '../../../support/use-redis.ts';
import { waitFor } from '../../../support/wait-for.ts';

const redis = useRedis(test);

interface Rig {
  readonly subscriber: Subscriber;
  /** Messages, losses and restorations, in order. */
  readonly events: readonly string[];
  /** Errors as logged. */
  readonly errors: readonly string[];
}

function subscribe(t: ExecutionContext, url: string, ...channels: string[]): Rig {
  const [errors, events]: [string[], string[]] = [[], []];
  const ignore = (): void => undefined;
  const log = { warn: ignore, info: ignore, error: (_: object, text: string) => errors.push(text) };
  const subscriber = new Subscriber(url, log as unknown as Logger);
  t.teardown(() => subscriber.close());
  for (const channel of channels) {
    subscriber.listen(channel, {
      onMessage: (message) => events.push(`${channel}: ${message.toString()}`),
      onLost: () => events.push(`${channel} lost`),
      onRestored: () => events.push(`${channel} restored`),
    });
  }
  return { subscriber, events, errors };
}

const subscribed = '>3\r\n$10\r\nssubscribe\r\n$4\r\nnews\r\n:1\r\n';

interface FakeRedis {
  readonly url: string;
  /** Cuts all connections; the first connection has number 1. */
  readonly cut: () => void;
}

/**
 * Answers ioredis's INFO, and replies to subscriptions as specified.
 * @param onSubscribe the reply, by connection number; null rejects all commands
 */
async function startFakeRedis(
  t: ExecutionContext,
  onSubscribe: (connection: number) => string | null,
): Promise<FakeRedis> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    const reply = onSubscribe(sockets.length);
    let isSubscribed = false;
    socket.on('error', () => undefined);
    const answer = (command: string): string => {
      if (reply === null) return '-ERR max number of clients reached\r\n';
      if (/\binfo\r\n/i.test(command)) return '$21\r\nredis_version:7.4.0\r\n\r\n';
      // Simulates a network that drops all packets.
      if (isSubscribed) return '';
      isSubscribed = command.includes('subscribe');
      return isSubscribed ? reply : '+OK\r\n';
    };
    socket.on('data', (data) => {
      const commands = data
        .toString()
        .split(/^\*\d+\r\n/m)
        .slice(1);
      socket.write(commands.map(answer).join(''));
    });
  });
  const cut = (): void => sockets.forEach((socket) => socket.destroy());
  t.teardown(() => {
    cut();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, cut };
}

function urlOfRedis(): string {
  const { host, port } = redis().options as { host: string; port: number };
  return `redis://${host}:${port}`;
}

// Serial, because these tests cut the connections of all tests and change their permissions.
test.serial('an interruption and the recovery from it are reported before any later message', async (t) => {
  const { subscriber, events } = subscribe(t, urlOfRedis(), 'one', 'two');
  await subscriber.start();
  t.true(subscriber.isListening('one'));
  t.is(await redis().spublish('one', 'first'), 1);
  await redis().client('KILL', 'TYPE', 'PUBSUB');
  await waitFor('a listener', async () => (await redis().spublish('two', '')) === 1);
  await redis().spublish('two', 'last');
  await waitFor('the message', () => events.at(-1) === 'two: last');
  const expected = ['one: first', 'one lost', 'two lost', 'one restored', 'two restored', 'two: last'];
  t.deepEqual(
    events.filter((event) => event !== 'two: '),
    expected,
  );
});

test.serial(
  'if Redis rejects a subscription after an interruption, this is reported and retried until it succeeds',
  async (t) => {
    const { subscriber, events, errors } = subscribe(t, urlOfRedis(), 'news');
    await subscriber.start();
    await redis().call('ACL', 'SETUSER', 'default', 'resetchannels');
    await redis().client('KILL', 'TYPE', 'PUBSUB');
    await waitFor('the rejection', () => errors.length > 0);
    t.deepEqual(errors, ['Redis subscription refused; reconnecting']);
    t.false(subscriber.isListening('news'));
    await redis().call('ACL', 'SETUSER', 'default', 'allchannels');
    await waitFor('a listener', async () => (await redis().spublish('news', 'hello')) === 1);
    await waitFor('the message', () => events.includes('news: hello'));
  },
);

test.serial('if Redis rejects the first subscription, the subscriber does not start', async (t) => {
  await redis().call('ACL', 'SETUSER', 'default', 'resetchannels');
  const { subscriber } = subscribe(t, urlOfRedis(), 'news');
  const error = await t.throwsAsync(subscriber.start(), { instanceOf: ConfigError });
  t.regex(error.message, /^Redis refuses the subscriptions of this process: NOPERM /);
  await redis().call('ACL', 'SETUSER', 'default', 'allchannels');
});

test('if a server becomes a replica without closing connections, subscribers and writers reconnect', async (t) => {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const client = createRedis(server.url, 'commands', createLogger('test', 'silent'));
  t.teardown(() => client.disconnect());
  await waitUntilReady(client);
  const events: string[] = [];
  const subscriber = new Subscriber(server.url, createLogger('test', 'silent'), 100);
  t.teardown(() => subscriber.close());
  subscriber.listen('news', {
    onMessage: () => undefined,
    onLost: () => events.push('lost'),
    onRestored: () => events.push('restored'),
  });
  await subscriber.start();

  const admin = createRedis(server.url, 'commands', createLogger('test', 'silent'));
  t.teardown(() => admin.disconnect());
  await waitUntilReady(admin);
  await admin.call('REPLICAOF', '127.0.0.1', '1');
  await waitFor('the loss to be reported', () => events.includes('lost'));
  const reconnecting = once(client, 'reconnecting');
  await t.throwsAsync(client.set('key', 'value'), { message: /READONLY/ });
  await reconnecting;

  await admin.call('REPLICAOF', 'NO', 'ONE');
  await waitFor('the subscription to be restored', () => events.includes('restored'));
  t.deepEqual(events, ['lost', 'restored']);
  await waitUntilReady(client);
  t.is(await client.set('key', 'value'), 'OK');
});

test('a subscriber retries even if the next connections fail before they are ready', async (t) => {
  const replies = [subscribed, '-NOPERM no channels\r\n', null, null];
  const message = '>3\r\n$8\r\nsmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n';
  const { url, cut } = await startFakeRedis(t, (connection) => {
    const reply = replies[connection - 1];
    return reply === undefined ? subscribed + message : reply;
  });
  const { subscriber, events } = subscribe(t, url, 'news');
  await subscriber.start();
  cut();
  await waitFor('the message', () => events.includes('news: hello'));
  t.deepEqual([...events].sort(), ['news lost', 'news restored', 'news: hello'].sort());
});

test('a listener that throws on an interruption does not prevent others from receiving messages again', async (t) => {
  const message = '>3\r\n$8\r\nsmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n';
  const { url, cut } = await startFakeRedis(t, (connection) =>
    connection === 1 ? subscribed : subscribed + message,
  );
  const { subscriber, events, errors } = subscribe(t, url, 'news');
  const fail = (): never => {
    throw new Error('a bug of ours');
  };
  subscriber.listen('news', { onMessage: () => undefined, onLost: fail, onRestored: fail });
  await subscriber.start();
  cut();
  await waitFor('the message', () => events.includes('news: hello'));
  const failure = 'subscription listener failed';
  t.deepEqual(errors, [failure, failure]);
});

test('a connection that stops responding without closing is replaced', async (t) => {
  let connections = 0;
  const { url } = await startFakeRedis(t, (connection) => {
    connections = connection;
    return subscribed;
  });
  const { subscriber, events } = subscribe(t, url, 'news');
  const probing = new Subscriber(url, { warn() {}, info() {} } as unknown as Logger, 100);
  t.teardown(() => probing.close());
  let lost = 0;
  probing.listen('news', { onMessage: () => undefined, onLost: () => (lost += 1) });
  await Promise.all([subscriber.start(), probing.start()]);
  await waitFor('another connection', () => lost > 0 && connections > 2);
  t.deepEqual(events, []);
});

test('a subscriber can be closed at any time: no event or error is reported, and no rejection is unhandled', async (t) => {
  const rejections: unknown[] = [];
  const record = (reason: unknown): unknown => rejections.push(reason);
  process.on('unhandledRejection', record);
  t.teardown(() => process.off('unhandledRejection', record));
  const { url, cut } = await startFakeRedis(t, (connection) => (connection === 1 ? subscribed : ''));
  const [running, starting] = [subscribe(t, url, 'news'), subscribe(t, url, 'news')];
  await running.subscriber.start();
  const started = starting.subscriber.start();
  cut();
  running.subscriber.close();
  starting.subscriber.close();
  await started;
  await nextTurn();
  t.deepEqual(rejections, []);
  t.deepEqual([...running.errors, ...starting.errors, ...running.events, ...starting.events], []);
});
