import test from 'ava';
import fc from 'fast-check';
import {
  BufferPool,
  unpooledBuffer,
  type PooledBuffer,
} from '../../../../shared/platform/runtime/buffer-pool.ts';

const kB = 1024;

const memoryOf = ({ bytes }: PooledBuffer): ArrayBufferLike => bytes.buffer;

test('a buffer has the requested length', (t) => {
  const pool = new BufferPool(1024 * kB);
  fc.assert(
    fc.property(fc.nat(300 * kB), (length) => {
      const lent = pool.lend(length);
      t.is(lent.bytes.length, length);
      lent.release();
    }),
  );
});

test('a returned buffer is lent again for the same or a somewhat smaller length', (t) => {
  const pool = new BufferPool(8 * 1024 * kB);
  const large = pool.lend(4 * 1024 * kB);
  const medium = pool.lend(512 * kB);
  large.release();
  medium.release();
  const small = pool.lend(100 * kB);
  t.is(memoryOf(small), memoryOf(medium), 'the smallest buffer that is large enough');
  const tiny = pool.lend(64 * kB);
  t.not(memoryOf(tiny), memoryOf(large), 'a buffer that is far too large is not used');
  t.is(memoryOf(pool.lend(600 * kB)), memoryOf(large));
});

test('a buffer that is returned twice is lent again only once', (t) => {
  const pool = new BufferPool(1024 * kB);
  const first = pool.lend(100 * kB);
  first.release();
  const second = pool.lend(100 * kB);
  t.is(memoryOf(second), memoryOf(first));
  first.release();
  t.not(memoryOf(pool.lend(100 * kB)), memoryOf(second));
});

test('releasing a buffer that is not from the pool has no effect', (t) => {
  const own = unpooledBuffer(Buffer.from('abc'));
  own.release();
  t.is(own.bytes.toString(), 'abc');
});

test('use returns the result of its callback, or throws its error', async (t) => {
  const pool = new BufferPool(1024 * kB);
  t.is(await pool.use(3, (buffer) => buffer.write('abc')), 3);
  await t.throwsAsync(
    pool.use(1, () => {
      throw new RangeError('too short');
    }),
    { instanceOf: RangeError },
  );
});

test('the pool never exceeds its maximum size: it drops the buffers that were returned first', (t) => {
  const pool = new BufferPool(300 * kB);
  const lent = [1, 2, 3].map(() => pool.lend(128 * kB));
  const tooLarge = pool.lend(512 * kB);
  for (const one of [...lent, tooLarge]) one.release();
  const again = [1, 2, 3].map(() => memoryOf(pool.lend(128 * kB)));
  t.deepEqual(
    lent.map((one) => again.includes(memoryOf(one))),
    [false, true, true],
  );
  t.not(memoryOf(pool.lend(512 * kB)), memoryOf(tooLarge));
});

test('a buffer has one user at a time, and is never lent again after the callback of its user failed', async (t) => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('borrow' as const), length: fc.integer({ min: 0, max: 600 * kB }) }),
    fc.record({ kind: fc.constantFrom('return' as const, 'fail' as const), which: fc.nat() }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const pool = new BufferPool(1024 * kB);
      const lent: PooledBuffer[] = [];
      const failed = new Set<ArrayBufferLike>();
      for (const one of steps) {
        if (one.kind === 'borrow') {
          const loan = pool.lend(one.length);
          t.false(lent.some((other) => memoryOf(other) === memoryOf(loan)));
          t.false(failed.has(memoryOf(loan)));
          lent.push(loan);
        } else if (one.kind === 'return') {
          const [loan] = lent.splice(one.which % Math.max(1, lent.length), 1);
          loan?.release();
        } else {
          const fail = (bytes: Buffer): Promise<never> => {
            failed.add(bytes.buffer);
            return Promise.reject(new Error('the work failed'));
          };
          await pool.use(one.which % (600 * kB), fail).catch(() => undefined);
        }
      }
    }),
  );
});
