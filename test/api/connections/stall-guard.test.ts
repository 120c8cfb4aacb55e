import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { createConnection } from '../../../api/connections/connection.ts';
import {
  StallGuard,
  type FindContested,
  type StallGuardOptions,
} from '../../../api/connections/stall-guard.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { useRaw } from '../../support/raw-caller.ts';
import { waitFor } from '../../support/wait-for.ts';

const log = createLogger('test', 'silent');

const maxStallMs = 400;
/** More than the system's own buffers hold between two sockets of one machine. */
const large = Buffer.alloc(24 * 1024 * 1024);

/** Node's own count of what was written to a socket. */
interface HasHandle {
  readonly _handle: { readonly bytesWritten: number; readonly writeQueueSize: number };
}

interface Served {
  readonly port: number;
  /** Resolves when the first response is closed. */
  readonly closed: Promise<void>;
}

async function serve(
  t: ExecutionContext,
  handle: (response: ServerResponse) => void,
  stallMs = maxStallMs,
  findContested: FindContested = () => [],
): Promise<Served> {
  let onClose = (): void => undefined;
  const closed = new Promise<void>((resolve) => {
    onClose = resolve;
  });
  const server = createServer((_, response) => {
    response.once('close', onClose);
    handle(response);
  }).listen(0, '127.0.0.1');
  const guard = new StallGuard({ maxStallMs: stallMs, findContested, log });
  server.on('connection', (socket) => guard.watch(createConnection(socket, '')));
  t.teardown(() => {
    guard.close();
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, closed };
}

/** A caller that has asked and reads nothing yet. */
async function ask(t: ExecutionContext, port: number): Promise<Socket> {
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
    how: 'a stream that is not over',
    send: (response: ServerResponse): void => {
      response.write(large);
    },
  },
]) {
  test(`a caller that reads nothing of ${how} is cut after the longest stall, and who answers it learns of that`, async (t) => {
    const { port, closed } = await serve(t, send);
    await ask(t, port);
    const startedAtMs = performance.now();
    await closed;
    t.true(performance.now() - startedAtMs >= maxStallMs);
  });
}

test('a caller that sends on and reads nothing is cut as well', async (t) => {
  const { port, closed } = await serve(t, (response) => {
    response.write(large);
  });
  const socket = await ask(t, port);
  const timer = setInterval(() => socket.write('GET / HT'), 50);
  t.teardown(() => clearInterval(timer));
  await closed;
  t.pass();
});

test('more that is written for a caller that reads nothing does not keep it', async (t) => {
  const { port, closed } = await serve(t, (response) => {
    response.write(large);
    const timer = setInterval(() => response.write(': keep-alive\n\n'), 50);
    response.once('close', () => clearInterval(timer));
  });
  await ask(t, port);
  await closed;
  t.pass();
});

test('a caller that reads slowly and steadily is not cut, though one write takes it many times the longest stall', async (t) => {
  const { port } = await serve(t, (response) => {
    response.end(large);
  });
  const socket = await ask(t, port);
  const startedAtMs = performance.now();
  let received = 0;
  // A piece at a time, with a pause that is well below the longest stall.
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

test('a caller that waits for an answer, or between two events of a stream, is not cut', async (t) => {
  const { port } = await serve(t, (response) => {
    setTimeout(() => response.write('first'), 2 * maxStallMs);
    setTimeout(() => response.end('second'), 4 * maxStallMs);
  });
  const answer = await fetch(`http://127.0.0.1:${port}`);
  t.is(await answer.text(), 'firstsecond');
});

test('a caller that reads nothing of what others wait for is cut after a tenth of that, and nobody else is', async (t) => {
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
  await ask(t, port);
  await ask(t, port);
  await closed;
  const tookMs = performance.now() - startedAtMs;
  t.true(tookMs >= stallMs / 10 && tookMs < stallMs, `${tookMs}`);
  t.deepEqual(
    accepted.map((socket) => socket.destroyed),
    [true, false],
  );
});

test('a caller that reads less than the system says at once is not cut for that', async (t) => {
  if (process.platform !== 'linux') {
    t.pass('only Linux says what it still holds');
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
  const socket = await ask(t, port);
  // The system takes more once a third of its buffer is free, of a megabyte or more.
  socket.on('data', () => {
    socket.pause();
    setTimeout(() => socket.resume(), stallMs / 5);
  });
  socket.resume();
  let [taken, sinceMs] = [0, 0];
  await waitFor('the system to take nothing for longer than the longest stall', () => {
    if (accepted === null || accepted.destroyed) return accepted !== null;
    const { bytesWritten, writeQueueSize } = (accepted as unknown as HasHandle)._handle;
    if (bytesWritten - writeQueueSize !== taken)
      [taken, sinceMs] = [bytesWritten - writeQueueSize, performance.now()];
    return performance.now() - sinceMs > 1.5 * stallMs;
  });
  t.false(accepted!.destroyed);
});

/** A connection for which this much waits, as Node tells of it. */
const createWaiting = () => ({
  destroyed: false,
  writableLength: 1_000,
  _handle: { bytesWritten: 1_000, writeQueueSize: 1_000 },
  once: () => undefined,
  resetAndDestroy() {
    this.destroyed = true;
  },
});

test('a caller that takes a little now and then is cut where others wait for what is held for it, and else is not', async (t) => {
  const stallMs = 2_000;
  const [wanted, other] = [createWaiting(), createWaiting()];
  const guard = new StallGuard({
    maxStallMs: stallMs,
    findContested: (slow) => slow.filter((socket) => (socket as unknown) === wanted),
    log,
  });
  t.teardown(() => guard.close());
  for (const socket of [wanted, other]) guard.watch(createConnection(socket as unknown as Socket, ''));
  const trickle = setInterval(() => {
    for (const { _handle } of [wanted, other]) _handle.writeQueueSize -= 1;
  }, 1);
  t.teardown(() => clearInterval(trickle));
  await waitFor('the cut', () => wanted.destroyed);
  t.false(other.destroyed);
});

/** A guard over these, whose system says of every caller that it holds as much as before. */
function guardOver(
  t: ExecutionContext,
  sockets: readonly ReturnType<typeof createWaiting>[],
  options: Partial<StallGuardOptions>,
): StallGuard {
  const guard = new StallGuard({ maxStallMs, findContested: () => [], log, ...options });
  t.teardown(() => guard.close());
  for (const socket of sockets) guard.watch(createConnection(socket as unknown as Socket, ''));
  return guard;
}

test('what others wait for is given up while the system is still being asked', async (t) => {
  const [asked, wanted] = [createWaiting(), createWaiting()];
  let searches = 0;
  const guard = guardOver(t, [asked], {
    findContested: (slow) => slow.filter((socket) => (socket as unknown) === wanted),
    readHeld: () => {
      searches += 1;
      return new Promise(() => undefined);
    },
  });
  await waitFor('the search', () => searches > 0);
  guard.watch(createConnection(wanted as unknown as Socket, ''));
  await waitFor('the cut', () => wanted.destroyed);
  t.false(asked.destroyed);
  t.is(searches, 1);
});

test('a caller that takes something while the system is asked is not cut by what was known before', async (t) => {
  const waiting = createWaiting();
  const watchedAtMs = performance.now();
  let searchesSince: number | null = null;
  guardOver(t, [waiting], {
    readHeld: async (sockets) => {
      if (searchesSince !== null) searchesSince += 1;
      // This is the one that would end in the cut.
      if (performance.now() - watchedAtMs > maxStallMs && searchesSince === null) {
        waiting._handle.writeQueueSize -= 1;
        searchesSince = 0;
      }
      return new Map(sockets.map((socket) => [socket, 500]));
    },
  });
  await waitFor('the next search', () => waiting.destroyed || (searchesSince ?? 0) > 0);
  t.true(searchesSince! > 0, 'it was cut at once');
});
