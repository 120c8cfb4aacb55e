import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import test from 'ava';
import { SseStream } from '../../../api/replies/sse-stream.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { waitFor } from '../../support/wait-for.ts';

/** The signal that a request has for its response. */
function signalOf(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  response.once('close', () => closed.abort());
  return closed.signal;
}

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
  const stream = new SseStream(response, signalOf(response));
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
  const stream = new SseStream(response, signalOf(response));
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

/** A response that takes everything. */
function createRead(): { readonly response: ServerResponse; readonly written: string[] } {
  const written: string[] = [];
  const read = Object.assign(createUnread(), {
    write: (data: Buffer | string) => written.push(data.toString()) > 0,
    end: () => undefined,
  });
  return { response: read, written };
}

test('an event that comes in pieces is not begun again by another run, and its end is no part of an error', async (t) => {
  const { response, written } = createRead();
  const stream = new SseStream(response, signalOf(response));
  t.true(stream.mayRestart(), 'nothing was begun');
  stream.delta(Buffer.from('data: a\n'));
  t.false(stream.mayRestart());
  stream.delta(Buffer.from('\n'));
  t.true(stream.mayRestart(), 'an event is whole, however it was cut');
  stream.delta(Buffer.from('data: half'));
  stream.fail(new AppError('upstream_error'));
  await stream.finished;
  const events = written.join('').split('\n\n');
  t.deepEqual(events.slice(0, 2), ['data: a', 'data: half']);
  t.regex(events[2] ?? '', /^data: \{"error":/);
});
