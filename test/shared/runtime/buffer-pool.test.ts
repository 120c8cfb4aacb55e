import test from 'ava';
import fc from 'fast-check';
import { BufferPool } from '../../../shared/runtime/buffer-pool.ts';

const kB = 1024;

interface Loan {
  readonly buffer: Buffer;
  give(): Promise<void>;
  fail(): Promise<void>;
}

/** A buffer that is lent until it is given back, or its work fails. */
function borrow(pool: BufferPool, length: number): Loan {
  let buffer: Buffer | null = null;
  let settle: { resolve: () => void; reject: (error: Error) => void };
  const used = pool.use(length, (lent) => {
    buffer = lent;
    return new Promise<void>((resolve, reject) => {
      settle = { resolve, reject };
    });
  });
  return {
    buffer: buffer!,
    async give() {
      settle.resolve();
      await used;
    },
    async fail() {
      settle.reject(new Error('the work failed'));
      await used.catch(() => undefined);
    },
  };
}

test('a buffer that was given back is lent again to who needs about as much', async (t) => {
  const pool = new BufferPool(1024 * kB);
  const first = borrow(pool, 100 * kB);
  await first.give();
  const smaller = borrow(pool, 10 * kB);
  t.not(smaller.buffer, first.buffer);
  const again = borrow(pool, 128 * kB);
  t.is(again.buffer, first.buffer);
});

test('what the work returns is returned, and its error is thrown', async (t) => {
  const pool = new BufferPool(1024 * kB);
  t.is(await pool.use(1, (buffer) => buffer.write('abc')), 3);
  await t.throwsAsync(
    pool.use(1, () => {
      throw new RangeError('too short');
    }),
    { instanceOf: RangeError },
  );
});

test('no more is kept than was allowed', async (t) => {
  const pool = new BufferPool(300 * kB);
  const loans = [1, 2, 3].map(() => borrow(pool, 128 * kB));
  for (const loan of loans) await loan.give();
  const large = borrow(pool, 512 * kB);
  await large.give();
  const kept = new Set([...loans, large].map(({ buffer }) => buffer));
  const again = [128 * kB, 128 * kB, 128 * kB, 512 * kB].map((length) => borrow(pool, length).buffer);
  t.deepEqual(
    again.map((buffer) => kept.has(buffer)),
    [true, true, false, false],
  );
});

test('a buffer is lent to one at a time, is long enough, and is never seen again once its work failed', async (t) => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('borrow' as const), length: fc.integer({ min: 0, max: 600 * kB }) }),
    fc.record({ kind: fc.constantFrom('give' as const, 'fail' as const), which: fc.nat() }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const pool = new BufferPool(1024 * kB);
      const lent: Loan[] = [];
      const failed = new Set<Buffer>();
      for (const one of steps) {
        if (one.kind === 'borrow') {
          const loan = borrow(pool, one.length);
          t.true(loan.buffer.length >= one.length);
          t.false(lent.some(({ buffer }) => buffer.buffer === loan.buffer.buffer));
          t.false(failed.has(loan.buffer));
          lent.push(loan);
          continue;
        }
        const [loan] = lent.splice(one.which % Math.max(1, lent.length), 1);
        if (loan === undefined) continue;
        await loan[one.kind]();
        if (one.kind === 'fail') failed.add(loan.buffer);
      }
    }),
  );
});
