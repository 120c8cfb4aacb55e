import { EventEmitter } from 'node:events';
import test from 'ava';
import {
  answerQuestions,
  ProcessQuestions,
  type ProcessChannel,
} from '../../../../shared/platform/child-processes/process-questions.ts';

/** One end of a channel within this process. */
class FakeChannel extends EventEmitter implements ProcessChannel {
  readonly sent: object[] = [];
  other: FakeChannel | null = null;
  isBroken = false;

  send(message: object, callback: (error: Error | null) => void): boolean {
    this.sent.push(message);
    const error = this.isBroken ? new Error('closed') : null;
    setImmediate(() => {
      callback(error);
      if (error === null) this.other?.emit('message', JSON.parse(JSON.stringify(message)));
    });
    return true;
  }
}

function connect(): [FakeChannel, FakeChannel] {
  const [near, far] = [new FakeChannel(), new FakeChannel()];
  near.other = far;
  far.other = near;
  return [near, far];
}

const longMs = 60_000;

test('a question gets the answer of the other process, at both ends of a channel', async (t) => {
  const [near, far] = connect();
  let count = 0;
  answerQuestions(far, { count: () => ++count, list: () => Promise.resolve([1, 2]) });
  answerQuestions(near, { name: () => 'near' });
  const questions = new ProcessQuestions(near);
  t.deepEqual(await Promise.all([questions.ask('count', longMs), questions.ask('list', longMs)]), [
    1,
    [1, 2],
  ]);
  t.is(await new ProcessQuestions(far).ask('name', longMs), 'near');
});

test('a question that is not answered yet is not sent again, and its late answer is for whoever asks then', async (t) => {
  const [near, far] = connect();
  const questions = new ProcessQuestions(near);
  t.is(await questions.ask('state', 1), null);
  t.is(await questions.ask('state', 1), null);
  const third = questions.ask('state', longMs);
  t.is(near.sent.length, 1);
  far.send({ gatewayAnswer: 'state', value: 7 }, () => undefined);
  t.is(await third, 7);
});

test('if the other process is gone, cannot answer, or fails to, the answer is null at once', async (t) => {
  const [near, far] = connect();
  answerQuestions(far, {
    broken: () => {
      throw new Error('broken');
    },
  });
  const questions = new ProcessQuestions(near);
  t.is(await questions.ask('broken', longMs), null);
  const unanswered = questions.ask('unknown', longMs);
  near.emit('disconnect');
  t.is(await unanswered, null);
  near.isBroken = true;
  t.is(await questions.ask('broken', longMs), null);
});

test('other messages are ignored', async (t) => {
  const [near, far] = connect();
  answerQuestions(far, { count: () => 1 });
  for (const message of [
    null,
    'count',
    { gatewayQuestion: 5 },
    { gatewayQuestion: 'toString' },
    { gatewayAnswer: 'x' },
  ]) {
    near.emit('message', message);
    far.emit('message', message);
  }
  t.is(await new ProcessQuestions(near).ask('count', longMs), 1);
  t.is(far.sent.length, 1);
});
