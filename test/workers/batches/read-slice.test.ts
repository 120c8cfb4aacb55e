import test from 'ava';
import { InputLost, readSlice } from '../../../workers/batches/read-slice.ts';

const { signal } = new AbortController();

/** An object store with one object, and how many bytes were read of it. */
function storeOf(content: Buffer) {
  const store = {
    readBytes: 0,
    getRange: async (_key: string, from: number, byteLength: number) => {
      const bytes = content.subarray(from, from + byteLength);
      store.readBytes += bytes.length;
      return bytes.length === 0 ? null : bytes;
    },
  };
  return store;
}

async function readLines(
  store: ReturnType<typeof storeOf>,
  { from, to, byteLength }: { readonly from: number; readonly to: number; readonly byteLength: number },
  maxLineBytes = 1_000,
): Promise<string[]> {
  const lines: string[] = [];
  for await (const read of readSlice(store, { key: 'a', from, to, byteLength }, { maxLineBytes, signal }))
    lines.push(...read.map(({ bytes }) => bytes.toString()));
  return lines;
}

test('every line is in exactly one slice, wherever slices end', async (t) => {
  const expected = ['one', 'two and more', '3', 'the last'];
  const content = Buffer.from(`\n${expected.join('\n\r\n')}`);
  const byteLength = content.length;
  for (let size = 1; size <= byteLength; size++) {
    const store = storeOf(content);
    const lines: string[] = [];
    for (let from = 0; from < byteLength; from += size)
      lines.push(...(await readLines(store, { from, to: Math.min(byteLength, from + size), byteLength })));
    t.deepEqual(lines, expected, `slices of ${size} bytes`);
  }
});

test('slices within one long line read only their own part of it', async (t) => {
  const mebibyte = 1024 * 1024;
  const content = Buffer.concat([Buffer.alloc(12 * mebibyte, 'x'), Buffer.from('\nnext\n')]);
  const byteLength = content.length;
  const store = storeOf(content);
  t.deepEqual(await readLines(store, { from: 4 * mebibyte, to: 6 * mebibyte, byteLength }), []);
  t.true(store.readBytes <= 3 * mebibyte, `${store.readBytes} bytes`);
  t.deepEqual(await readLines(store, { from: 11 * mebibyte, to: byteLength, byteLength }), ['next']);
});

test('an object that is gone or shorter than it was is lost', async (t) => {
  const content = Buffer.from('one\ntwo\n');
  for (const stored of [Buffer.alloc(0), content.subarray(0, 5)])
    await t.throwsAsync(readLines(storeOf(stored), { from: 0, to: 8, byteLength: content.length }), {
      instanceOf: InputLost,
    });
});
