import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import test from 'ava';
import { SseStream } from '../../../api/present/sse-stream.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A response whose reader takes nothing until it is told to. */
function createUnread(): ServerResponse {
  const unread = Object.assign(new EventEmitter(), {
    req: { socket: {} },
    socket: { destroyed: false },
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
