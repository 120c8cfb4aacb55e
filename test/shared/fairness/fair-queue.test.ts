import test from 'ava';
import fc from 'fast-check';
import { FairQueue, type QueueEntry } from '../../../shared/fairness/fair-queue.ts';

function serveAll<T>(queue: FairQueue<T>): T[] {
  const served: T[] = [];
  for (let entry = queue.peek(); entry !== undefined; entry = queue.peek()) served.push(queue.serve(entry));
  return served;
}

test('accounts take turns, and the entries of each account are served in order', (t) => {
  const queue = new FairQueue<string>();
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) queue.add(item[0]!, item);
  t.deepEqual([queue.size, queue.holderCount, queue.countOf('a'), queue.countOf('z')], [6, 3, 3, 0]);
  t.deepEqual(serveAll(queue), ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  t.deepEqual([queue.size, queue.holderCount], [0, 0]);
});

test('a new account is served after one entry of each waiting account, even if another has added a thousand', (t) => {
  const queue = new FairQueue<string>();
  for (let i = 0; i < 1_000; i++) queue.add('many', `many ${i}`);
  queue.add('few', 'few');
  t.is(queue.serve(queue.peek()!), 'many 0');
  t.is(queue.serve(queue.peek()!), 'few');
});

test('an entry can be removed once, from any position, and its account does not lose its turn', (t) => {
  const queue = new FairQueue<string>();
  const entries = ['a1', 'a2', 'a3', 'b1'].map((item) => queue.add(item[0]!, item));
  t.true(queue.remove(entries[1]!));
  t.false(queue.remove(entries[1]!));
  t.true(queue.remove(entries[0]!));
  t.deepEqual(serveAll(queue), ['a3', 'b1']);
});

test('drain empties the queue, and drained entries cannot be removed again', (t) => {
  const queue = new FairQueue<string>();
  const entries = ['a1', 'b1', 'a2'].map((item) => queue.add(item[0]!, item));
  t.deepEqual(queue.drain().sort(), ['a1', 'a2', 'b1']);
  t.false(queue.remove(entries[0]!));
  t.is(queue.size, 0);
});

test('for any order of steps, no account is served twice while another one waits', (t) => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('a', 'b', 'c', 'd') },
    { weight: 2, arbitrary: fc.constant('serve' as const) },
    { weight: 1, arbitrary: fc.nat() },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new FairQueue<number>();
      let entries: QueueEntry<number>[] = [];
      /** For each waiting account, the accounts served since it started to wait. */
      const servedWhileWaiting = new Map<string, string[]>();
      let count = 0;
      const forgetIdle = (): void => {
        for (const id of servedWhileWaiting.keys())
          if (queue.countOf(id) === 0) servedWhileWaiting.delete(id);
      };
      for (const one of steps) {
        if (one === 'serve') {
          const entry = queue.peek();
          if (entry === undefined) continue;
          const first = entries.find(({ holder }) => holder === entry.holder)!;
          t.is(first, entry);
          queue.serve(entry);
          entries = entries.filter((other) => other !== entry);
          servedWhileWaiting.set(entry.holder, []);
          for (const [id, served] of servedWhileWaiting) {
            if (id === entry.holder) continue;
            served.push(entry.holder);
            t.is(new Set(served).size, served.length, `${entry.holder} was served twice while ${id} waited`);
          }
        } else if (typeof one === 'string') {
          entries.push(queue.add(one, (count += 1)));
          if (!servedWhileWaiting.has(one)) servedWhileWaiting.set(one, []);
        } else if (entries.length > 0) {
          const [entry] = entries.splice(one % entries.length, 1);
          t.true(queue.remove(entry!));
        }
        forgetIdle();
        t.is(queue.size, entries.length);
        t.is(queue.holderCount, new Set(entries.map(({ holder }) => holder)).size);
      }
    }),
  );
});
