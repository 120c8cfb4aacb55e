import test from 'ava';
import { openRange, type RangeSource } from '../../../../api/endpoints/files/open-range.ts';
import type { WantedRange } from '../../../../api/present/byte-range.ts';

const bytes = Buffer.from(Array.from({ length: 1_200_000 }, (_, i) => i % 251));
const step = 512 * 1024;

/** A file, and which places of it are read. */
function createFile() {
  const asked: string[] = [];
  const file: RangeSource = {
    describe: async () => {
      asked.push('length');
      return { objectBytes: bytes.length, storedAt: new Date(0) };
    },
    read: async (at, target) => {
      if (at >= bytes.length) return null;
      const length = bytes.copy(target, 0, at);
      asked.push(`${at}+${length}`);
      return bytes.length;
    },
  };
  return { file, asked };
}

async function readAll(wanted: WantedRange | null): Promise<{ read: Buffer; asked: readonly string[] }> {
  const { file, asked } = createFile();
  const { chunks } = await openRange(file, wanted);
  const read: Buffer[] = [];
  for (;;) {
    const target = Buffer.alloc(chunks.maxChunkBytes);
    const length = await chunks.write(target);
    if (length === 0) return { read: Buffer.concat(read), asked };
    read.push(target.subarray(0, length));
  }
}

test('of a range nothing is read before its first byte or behind its last, and no more than half a megabyte at once', async (t) => {
  const cases: readonly [WantedRange | null, number, number, readonly string[]][] = [
    [null, 0, 1_200_000, [`0+${step}`, `${step}+${step}`, `${2 * step}+${1_200_000 - 2 * step}`]],
    [{ from: 1_000_000, end: 1_000_010 }, 1_000_000, 1_000_010, ['1000000+10']],
    [{ from: 1_199_990, end: Infinity }, 1_199_990, 1_200_000, ['1199990+10']],
    [{ from: 10, end: 20 + step }, 10, 20 + step, [`10+${step}`, `${10 + step}+10`]],
    // Their place is known by the length alone.
    [{ lastBytes: 7 }, 1_199_993, 1_200_000, ['length', '1199993+7']],
  ];
  for (const [wanted, from, end, places] of cases) {
    const { read, asked } = await readAll(wanted);
    t.true(read.equals(bytes.subarray(from, end)), JSON.stringify(wanted));
    t.deepEqual(asked, places);
  }
});

test('bytes that the file does not have are a 416 that tells its length', async (t) => {
  for (const wanted of [{ from: 1_200_000, end: Infinity }, { lastBytes: 0 }]) {
    const error = await t.throwsAsync(openRange(createFile().file, wanted));
    t.like(error, { status: 416, headers: { 'content-range': 'bytes */1200000' } });
  }
});
