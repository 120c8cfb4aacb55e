import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import fc from 'fast-check';
import { AnswerRoom } from '../../../api/dispatch/answer-room.ts';
import type { AppError } from '../../../shared/contract/errors.ts';

const MB = 1_000_000;

interface Stay {
  /** `waits`, `inside`, `left`, or the code of its error. */
  state: string;
  leave: () => void;
  readonly response: EventEmitter;
}

function ask(room: AnswerRoom, accountId: string, bytes: number): Stay {
  const response = Object.assign(new EventEmitter(), { destroyed: false });
  const stay: Stay = { state: 'waits', leave: () => undefined, response };
  room.enter(accountId, bytes, response as unknown as ServerResponse).then(
    (leave) => {
      stay.state = 'inside';
      stay.leave = () => {
        stay.state = 'left';
        leave();
      };
    },
    (error: AppError) => {
      stay.state = error.code;
    },
  );
  return stay;
}

test('small answers are not counted; of large ones no more are under way than there is room for, in their order', async (t) => {
  const room = new AnswerRoom(10 * MB);
  const small = Array.from({ length: 1_000 }, () => ask(room, 'ann', 100_000));
  const [first, second, third, fourth] = ['ann', 'bob', 'carol', 'dan'].map((id) => ask(room, id, 4 * MB));
  await nextTurn();
  t.true(small.every(({ state }) => state === 'inside'));
  t.deepEqual(
    [first!.state, second!.state, third!.state, fourth!.state],
    ['inside', 'inside', 'waits', 'waits'],
  );
  second!.leave();
  await nextTurn();
  t.deepEqual([third!.state, fourth!.state], ['inside', 'waits']);
  t.is(room.heldBytes, 8 * MB);
});

test('an account has half of what others leave it, or one answer, so that there is room for one more', async (t) => {
  const room = new AnswerRoom(16 * MB);
  const stays = new Map(
    ['first', 'second', 'third'].map((id) => [id, Array.from({ length: 20 }, () => ask(room, id, MB))]),
  );
  await nextTurn();
  const inside = (): number[] =>
    [...stays.values()].map((ofAccount) => ofAccount.filter(({ state }) => state === 'inside').length);
  t.deepEqual(inside(), [8, 4, 2]);
  stays.get('first')![0]!.leave();
  await nextTurn();
  t.deepEqual(inside(), [7, 4, 2], 'what came free is left for somebody else');
  const fourth = ask(room, 'fourth', 3 * MB);
  await nextTurn();
  t.is(fourth.state, 'inside');

  const narrow = new AnswerRoom(MB);
  const huge = [ask(narrow, 'ann', 5 * MB), ask(narrow, 'ann', 5 * MB)];
  await nextTurn();
  t.deepEqual(
    huge.map(({ state }) => state),
    ['inside', 'waits'],
  );
});

test('no account has more than 256 requests in line', async (t) => {
  const room = new AnswerRoom(MB);
  const stays = Array.from({ length: 258 }, () => ask(room, 'ann', MB));
  await nextTurn();
  t.is(stays.filter(({ state }) => state === 'waits').length, 256);
  t.is(stays.at(-1)!.state, 'queue_full');
});

test('accounts take turns in line', async (t) => {
  const room = new AnswerRoom(2 * MB);
  const holding = ask(room, 'x', 2 * MB);
  const stays = ['ann', 'ann', 'ann', 'bob', 'bob'].map((id) => ask(room, id, 2 * MB));
  const order: number[] = [];
  let inside = holding;
  for (let i = 0; i < stays.length; i++) {
    await nextTurn();
    inside.leave();
    await nextTurn();
    const next = stays.findIndex(({ state }) => state === 'inside');
    order.push(next);
    inside = stays[next]!;
  }
  t.deepEqual(order, [0, 3, 1, 4, 2]);
});

test('smaller ones pass one that the room is too small for, but not for long; once it has left they go on', async (t) => {
  let nowMs = 0;
  const room = new AnswerRoom(10 * MB, () => nowMs);
  const holding = ask(room, 'x', 5 * MB);
  const large = ask(room, 'ann', 9 * MB);
  const passing = ask(room, 'bob', 2 * MB);
  await nextTurn();
  t.deepEqual([large.state, passing.state], ['waits', 'inside']);
  nowMs += 5_001;
  const behind = ask(room, 'carol', 2 * MB);
  await nextTurn();
  t.is(behind.state, 'waits');
  large.response.emit('close');
  await nextTurn();
  t.is(large.state, 'job_cancelled');
  t.is(behind.state, 'inside');
  for (const stay of [holding, passing, behind]) stay.leave();
  t.is(room.heldBytes, 0);
});

test('however they come, leave and go on: never more is held than there is room for, nobody waits for ever, no room is lost', async (t) => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('ask' as const),
      account: fc.constantFrom('a', 'b', 'c'),
      bytes: fc.integer({ min: 300_000, max: 9 * MB }),
    }),
    fc.record({ kind: fc.constantFrom('leave' as const, 'close' as const), which: fc.nat() }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const room = new AnswerRoom(10 * MB);
      const stays: Stay[] = [];
      const endOne = (state: string, which: number, end: (stay: Stay) => void): boolean => {
        const such = stays.filter((stay) => stay.state === state);
        if (such.length > 0) end(such[which % such.length]!);
        return such.length > 0;
      };
      for (const one of steps) {
        if (one.kind === 'ask') stays.push(ask(room, one.account, one.bytes));
        else if (one.kind === 'leave') endOne('inside', one.which, (stay) => stay.leave());
        else endOne('waits', one.which, (stay) => stay.response.emit('close'));
        await nextTurn();
        t.true(room.heldBytes <= 10 * MB);
      }
      do await nextTurn();
      while (endOne('inside', 0, (stay) => stay.leave()));
      t.true(stays.every(({ state }) => state === 'left' || state === 'job_cancelled'));
      t.is(room.heldBytes, 0);
    }),
  );
});
