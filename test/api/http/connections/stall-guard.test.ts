import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { createConnection } from '../../../../api/http/connections/connection.ts';
import {
  StallGuard,
  type FindMemoryBlockers,
  type StallGuardOptions,
} from '../../../../api/http/connections/stall-guard.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { useRaw } from '../../../support/raw-caller.ts';
import { waitFor } from '../../../support/wait-for.ts';

const log = createLogger('test', 'silent');

const maxStallMs = 400;
/** A body larger than the kernel's buffers between two local sockets. */
const large = Buffer.alloc(24 * 1024 * 1024);

/** The number of bytes written to a socket according to Node. */
interface HasHandle {
  readonly _handle: { readonly bytesWritten: number; readonly writeQueueSize: number };
}

interface TestServer {
  readonly port: number;
  /** Resolves when the first response is closed. */
  readonly closed: Promise<void>;
}

async function serve(
  t: ExecutionContext,
  handle: (response: ServerResponse) => void,
  stallMs = maxStallMs,
  findMemoryBlockers: FindMemoryBlockers = () => [],
): Promise<TestServer> {
  let onClose = (): void => undefined;
  const closed = new Promise<void>((resolve) => {
    onClose = resolve;
  });
  const server = createServer((_, response) => {
    response.once('close', onClose);
    handle(response);
  }).listen(0, '127.0.0.1');
  const guard = new StallGuard({ maxStallMs: stallMs, findMemoryBlockers, log });
  server.on('connection', (socket) => guard.watch(createConnection(socket, '')));
  t.teardown(() => {
    guard.close();
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, closed };
}

/** A caller that has sent a request and has not read anything yet. */
async function requestPaused(t: ExecutionContext, port: number): Promise<Socket> {
  const { socket } = await useRaw(t, `http://127.0.0.1:${port}`, { isPaused: true });
  socket.write('GET / HTTP/1.1\r\nhost: caller\r\n\r\n');
  return socket;
}

for (const { how, send } of [
  {
    how: 'one large write',
    send: (response: ServerResponse): void => {
      response.end(large);
    },
  },
  {
    how: 'an unfinished stream',
    send: (response: ServerResponse): void => {
      response.write(large);
    },
  },
]) {
  test(`a caller that reads nothing of ${how} is disconnected after the maximum stall, and its response is closed`, async (t) => {
    const { port, closed } = await serve(t, send);
    await requestPaused(t, port);
    const startedAtMs = performance.now();
    await closed;
    t.true(performance.now() - startedAtMs >= maxStallMs);
  });
}

test('a caller that keeps sending but reads nothing is disconnected too', async (t) => {
  const { port, closed } = await serve(t, (response) => {
    response.write(large);
  });
  const socket = await requestPaused(t, port);
  const timer = setInterval(() => socket.write('GET / HT'), 50);
  t.teardown(() => clearInterval(timer));
  await closed;
  t.pass();
});

test('writing more to a caller that reads nothing does not keep it connected', async (t) => {
  const { port, closed } = await serve(t, (response) => {
    response.write(large);
    const timer = setInterval(() => response.write(': keep-alive\n\n'), 50);
    response.once('close', () => clearInterval(timer));
  });
  await requestPaused(t, port);
  await closed;
  t.pass();
});

test('a caller that reads slowly but steadily stays connected, even if one write takes many times the maximum stall', async (t) => {
  const { port } = await serve(t, (response) => {
    response.end(large);
  });
  const socket = await requestPaused(t, port);
  const startedAtMs = performance.now();
  let received = 0;
  // One piece at a time, with a pause well below the maximum stall.
  socket.on('data', (text: string) => {
    received += text.length;
    socket.pause();
    setTimeout(() => socket.resume(), 8);
  });
  socket.resume();
  while (received < large.length && !socket.destroyed) await delay(20);
  t.true(received >= large.length);
  t.true(performance.now() - startedAtMs > 3 * maxStallMs);
});

test('a caller that waits for a response, or between two events of a stream, stays connected', async (t) => {
  const { port } = await serve(t, (response) => {
    setTimeout(() => response.write('first'), 2 * maxStallMs);
    setTimeout(() => response.end('second'), 4 * maxStallMs);
  });
  const response = await fetch(`http://127.0.0.1:${port}`);
  t.is(await response.text(), 'firstsecond');
});

test('if others wait for the memory of an unread response, its caller is disconnected after a tenth of the maximum stall', async (t) => {
  const accepted: Socket[] = [];
  const stallMs = 10_000;
  const { port, closed } = await serve(
    t,
    (response) => {
      accepted.push(response.socket!);
      response.end(large);
    },
    stallMs,
    (stalled) => stalled.filter((socket) => socket === accepted[0]),
  );
  const startedAtMs = performance.now();
  await requestPaused(t, port);
  await requestPaused(t, port);
  await closed;
  const tookMs = performance.now() - startedAtMs;
  t.true(tookMs >= stallMs / 10 && tookMs < stallMs, `${tookMs}`);
  t.deepEqual(
    accepted.map((socket) => socket.destroyed),
    [true, false],
  );
});

test('a caller stays connected even if it reads so little that the kernel does not always report progress', async (t) => {
  if (process.platform !== 'linux') {
    t.pass('only Linux reports unacknowledged bytes');
    return;
  }
  const stallMs = 2_000;
  let accepted: Socket | null = null;
  const { port } = await serve(
    t,
    (response) => {
      accepted = response.socket;
      response.end(large);
    },
    stallMs,
  );
  const socket = await requestPaused(t, port);
  // The kernel accepts more data only once a third of its buffer (a megabyte or more) is empty.
  socket.on('data', () => {
    socket.pause();
    setTimeout(() => socket.resume(), stallMs / 5);
  });
  socket.resume();
  let [acceptedBytes, sinceMs] = [0, 0];
  await waitFor('the kernel to accept no data for longer than the maximum stall', () => {
    if (accepted === null || accepted.destroyed) return accepted !== null;
    const { bytesWritten, writeQueueSize } = (accepted as unknown as HasHandle)._handle;
    if (bytesWritten - writeQueueSize !== acceptedBytes)
      [acceptedBytes, sinceMs] = [bytesWritten - writeQueueSize, performance.now()];
    return performance.now() - sinceMs > 1.5 * stallMs;
  });
  t.false(accepted!.destroyed);
});

/** A socket with 1000 unsent bytes according to Node. */
const createStalledSocket = () => ({
  destroyed: false,
  writableLength: 1_000,
  _handle: { bytesWritten: 1_000, writeQueueSize: 1_000 },
  once: () => undefined,
  resetAndDestroy() {
    this.destroyed = true;
  },
});

test('a caller that reads a little now and then is disconnected only if others wait for its memory', async (t) => {
  const stallMs = 2_000;
  const [contested, other] = [createStalledSocket(), createStalledSocket()];
  const guard = new StallGuard({
    maxStallMs: stallMs,
    findMemoryBlockers: (slow) => slow.filter((socket) => (socket as unknown) === contested),
    log,
  });
  t.teardown(() => guard.close());
  for (const socket of [contested, other]) guard.watch(createConnection(socket as unknown as Socket, ''));
  const trickle = setInterval(() => {
    for (const { _handle } of [contested, other]) _handle.writeQueueSize -= 1;
  }, 1);
  t.teardown(() => clearInterval(trickle));
  await waitFor('the disconnect', () => contested.destroyed);
  t.false(other.destroyed);
});

/** A guard over these sockets, with a kernel that reports no progress for any caller. */
function guardOver(
  t: ExecutionContext,
  sockets: readonly ReturnType<typeof createStalledSocket>[],
  options: Partial<StallGuardOptions>,
): StallGuard {
  const guard = new StallGuard({ maxStallMs, findMemoryBlockers: () => [], log, ...options });
  t.teardown(() => guard.close());
  for (const socket of sockets) guard.watch(createConnection(socket as unknown as Socket, ''));
  return guard;
}

test('a connection whose memory others wait for is closed even while a query to the kernel is pending', async (t) => {
  const [queried, contested] = [createStalledSocket(), createStalledSocket()];
  let queries = 0;
  const guard = guardOver(t, [queried], {
    findMemoryBlockers: (slow) => slow.filter((socket) => (socket as unknown) === contested),
    readHeld: () => {
      queries += 1;
      return new Promise(() => undefined);
    },
  });
  await waitFor('the query', () => queries > 0);
  guard.watch(createConnection(contested as unknown as Socket, ''));
  await waitFor('the disconnect', () => contested.destroyed);
  t.false(queried.destroyed);
  t.is(queries, 1);
});

test('if a caller reads data while the kernel is queried, the result of the previous query does not disconnect it', async (t) => {
  const waiting = createStalledSocket();
  const watchedAtMs = performance.now();
  let queriesSince: number | null = null;
  guardOver(t, [waiting], {
    readHeld: async (sockets) => {
      if (queriesSince !== null) queriesSince += 1;
      // Without the data read during this query, its result would cause the disconnect.
      if (performance.now() - watchedAtMs > maxStallMs && queriesSince === null) {
        waiting._handle.writeQueueSize -= 1;
        queriesSince = 0;
      }
      return new Map(sockets.map((socket) => [socket, 500]));
    },
  });
  await waitFor('the next query', () => waiting.destroyed || (queriesSince ?? 0) > 0);
  t.true(queriesSince! > 0, 'the caller was disconnected immediately');
});
