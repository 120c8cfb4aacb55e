import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import test from 'ava';
import { SseStream } from '../../../../api/requests/replies/sse-stream.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { waitFor } from '../../../support/wait-for.ts';

/** The abort signal of a request with this response. */
function signalOf(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  response.once('close', () => closed.abort());
  return closed.signal;
}

/** A response whose reader accepts nothing until it emits `drain`. */
function createUnreadResponse(): ServerResponse {
  const socket = { destroyed: false, resetAndDestroy: () => void unread.emit('close') };
  const unread = Object.assign(new EventEmitter(), {
    req: { socket, headers: {} },
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

test('while a reader is behind, its worker is notified repeatedly, until the reader has caught up', async (t) => {
  const response = createUnreadResponse();
  const controls: string[] = [];
  const stream = new SseStream(response, signalOf(response));
  stream.attach({
    position: () => null,
    pause: () => controls.push('pause'),
    resume: () => controls.push('resume'),
    cancel: () => controls.push('cancel'),
  });
  stream.delta(Buffer.from('data: x\n\n'));
  t.deepEqual(controls, ['pause']);
  await waitFor('another pause message', () => controls.length === 2);
  response.emit('drain');
  t.deepEqual(controls, ['pause', 'pause', 'resume']);
  response.emit('close');
  t.is(controls.at(-1), 'cancel');
  await stream.finished;
});

test('if a reader is too far behind, it is disconnected, and its worker is notified', async (t) => {
  const response = createUnreadResponse();
  const cancels: unknown[] = [];
  const stream = new SseStream(response, signalOf(response));
  stream.attach({
    position: () => null,
    pause: () => undefined,
    resume: () => undefined,
    cancel: (how) => cancels.push(how),
  });
  Object.assign(response, { writableLength: 9_000_000 });
  stream.delta(Buffer.from('data: x\n\n'));
  await stream.finished;
  t.deepEqual(cancels, [{ isUnread: true }]);
});

/** A response whose reader accepts everything immediately. */
function createDrainedResponse(): { readonly response: ServerResponse; readonly written: string[] } {
  const written: string[] = [];
  const drained = Object.assign(createUnreadResponse(), {
    write: (data: Buffer | string) => written.push(data.toString()) > 0,
    end: () => undefined,
  });
  return { response: drained, written };
}

test('in the middle of an event, another attempt cannot restart the stream, and an error is sent as a separate event', async (t) => {
  const { response, written } = createDrainedResponse();
  const stream = new SseStream(response, signalOf(response));
  t.true(stream.mayRestart(), 'nothing has been sent');
  stream.delta(Buffer.from('data: a\n'));
  t.false(stream.mayRestart());
  stream.delta(Buffer.from('\n'));
  t.true(stream.mayRestart(), 'the event is complete');
  stream.delta(Buffer.from('data: half'));
  stream.fail(new AppError('upstream_error'));
  await stream.finished;
  const events = written.join('').split('\n\n');
  t.deepEqual(events.slice(0, 2), ['data: a', 'data: half']);
  t.regex(events[2] ?? '', /^data: \{"error":/);
});
