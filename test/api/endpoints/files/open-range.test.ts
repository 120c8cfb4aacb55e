import test from 'ava';
import { openRange, type RangeSource } from '../../../../api/endpoints/files/open-range.ts';
import type { AppError } from '../../../../shared/contract/errors.ts';
import type { RequestedRange } from '../../../../api/endpoints/files/byte-range.ts';

const bytes = Buffer.from(Array.from({ length: 1_200_000 }, (_, i) => i % 251));
const step = 512 * 1024;

/** A file, and a record of the ranges that are read from it. */
function createFile() {
  const readRanges: string[] = [];
  const file: RangeSource = {
    describe: async () => {
      readRanges.push('length');
      return { objectBytes: bytes.length, storedAt: new Date(0) };
    },
    createMissingError: () => new Error('missing') as AppError,
    read: async (at, target) => {
      if (at >= bytes.length) return null;
      const length = bytes.copy(target, 0, at);
      readRanges.push(`${at}+${length}`);
      return bytes.length;
    },
  };
  return { file, readRanges };
}

async function readAll(
  range: RequestedRange | null,
): Promise<{ read: Buffer; readRanges: readonly string[] }> {
  const { file, readRanges } = createFile();
  const { chunks } = await openRange(file, range);
  const read: Buffer[] = [];
  for (;;) {
    const target = Buffer.alloc(chunks.maxChunkBytes);
    const length = await chunks.write(target);
    if (length === 0) return { read: Buffer.concat(read), readRanges };
    read.push(target.subarray(0, length));
  }
}

test('only the bytes inside a range are read, and at most half a megabyte at a time', async (t) => {
  const cases: readonly [RequestedRange | null, number, number, readonly string[]][] = [
    [null, 0, 1_200_000, [`0+${step}`, `${step}+${step}`, `${2 * step}+${1_200_000 - 2 * step}`]],
    [{ from: 1_000_000, end: 1_000_010 }, 1_000_000, 1_000_010, ['1000000+10']],
    [{ from: 1_199_990, end: Infinity }, 1_199_990, 1_200_000, ['1199990+10']],
    [{ from: 10, end: 20 + step }, 10, 20 + step, [`10+${step}`, `${10 + step}+10`]],
    // The offset of these ranges depends on the file length only.
    [{ lastBytes: 7 }, 1_199_993, 1_200_000, ['length', '1199993+7']],
  ];
  for (const [range, from, end, expectedRanges] of cases) {
    const { read, readRanges } = await readAll(range);
    t.true(read.equals(bytes.subarray(from, end)), JSON.stringify(range));
    t.deepEqual(readRanges, expectedRanges);
  }
});

test("a range outside the file is a 416 with the file's length", async (t) => {
  for (const range of [{ from: 1_200_000, end: Infinity }, { lastBytes: 0 }]) {
    const error = await t.throwsAsync(openRange(createFile().file, range));
    t.like(error, { status: 416, headers: { 'content-range': 'bytes */1200000' } });
  }
});
