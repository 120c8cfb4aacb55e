import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import test from 'ava';
import { SseStream } from '../../../api/present/sse-stream.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A response whose reader takes nothing until it is told to. */
function createUnread(): ServerResponse {
  const socket = { destroyed: false, resetAndDestroy: () => void unread.emit('close') };
  const unread = Object.assign(new EventEmitter(), {
    req: { socket },
    socket,
    headersSent: false,
    destroyed: false,
    writableLength: 0,
    writeHead: () => {
      unread.headersSent = true;
    },
    write: () => false,
  });
  return unread as unknown as ServerResponse;
}

test('a worker is told again and again that a reader is behind, until the reader has caught up', async (t) => {
  const response = createUnread();
  const told: string[] = [];
  const stream = new SseStream(response);
  stream.attach({
    position: () => null,
    pause: () => told.push('pause'),
    resume: () => told.push('resume'),
    cancel: () => told.push('cancel'),
  });
  stream.delta(Buffer.from('data: x\n\n'));
  t.deepEqual(told, ['pause']);
  await waitFor('another word', () => told.length === 2);
  response.emit('drain');
  t.deepEqual(told, ['pause', 'pause', 'resume']);
  response.emit('close');
  t.is(told.at(-1), 'cancel');
  await stream.finished;
});

test('a reader that is too far behind is cut as one who does not read, and its worker is told so', async (t) => {
  const response = createUnread();
  const told: unknown[] = [];
  const stream = new SseStream(response);
  stream.attach({
    position: () => null,
    pause: () => undefined,
    resume: () => undefined,
    cancel: (how) => told.push(how),
  });
  Object.assign(response, { writableLength: 9_000_000 });
  stream.delta(Buffer.from('data: x\n\n'));
  await stream.finished;
  t.deepEqual(told, [{ isUnread: true }]);
});
