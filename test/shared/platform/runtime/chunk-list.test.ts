import test from 'ava';
import { ChunkList } from '../../../../shared/platform/runtime/chunk-list.ts';

const lengths = [1, 0, 3, 1_023, 1_024, 2, 5_000, 1, 1, 1_023, 1_023, 1_023, 1_023, 70_000, 1];

test('bytes are returned in order and unchanged, for chunks of any length', (t) => {
  const list = new ChunkList();
  for (let round = 0; round < 3; round++) {
    const chunks = lengths.map((length, i) => Buffer.alloc(length, i + round));
    for (const chunk of chunks) list.add(chunk);
    const expected = Buffer.concat(chunks);
    t.is(list.length, expected.length);
    t.true((round === 1 ? Buffer.concat(list.takeChunks()) : list.take()).equals(expected));
    t.is(list.length, 0);
    t.is(list.take().length, 0);
  }
});

test('one-byte chunks share buffers', (t) => {
  const list = new ChunkList();
  for (let i = 0; i < 100_000; i++) list.add(Buffer.from([i]));
  t.true(list.takeChunks().length < 30);
});

test('short chunks between long ones share blocks', (t) => {
  const list = new ChunkList();
  for (let i = 0; i < 1_000; i++) {
    list.add(Buffer.alloc(2_000));
    list.add(Buffer.alloc(1));
  }
  const blocks = new Set(
    list
      .takeChunks()
      .filter(({ length }) => length === 1)
      .map(({ buffer }) => buffer),
  );
  t.true(blocks.size <= 2, String(blocks.size));
});
