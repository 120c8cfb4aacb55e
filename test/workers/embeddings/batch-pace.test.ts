import test from 'ava';
import { BatchPace } from '../../../workers/embeddings/batch-pace.ts';

const vendorLimit = 2_048;

test('calls are full after four rounds if they are quick', (t) => {
  const pace = new BatchPace();
  const sizes: number[] = [];
  for (let round = 0; round < 6; round += 1) {
    const size = pace.inputs;
    sizes.push(size);
    // Seven calls that end together.
    for (let i = 0; i < 7; i += 1) pace.noteCall(size, 30 + 0.8 * size, vendorLimit);
  }
  t.deepEqual(sizes, [128, 256, 512, 1_024, 2_048, 2_048]);
  t.is(pace.calls, 8 + 6 * 7);
});

test('there are at most 64 calls at a time, however quick they are', (t) => {
  const pace = new BatchPace();
  for (let i = 0; i < 100; i += 1) pace.noteCall(10, 1, vendorLimit);
  t.is(pace.calls, 64);
  t.is(pace.inputs, 128, 'calls that are not full say nothing about larger ones');
});

test('a server that takes four seconds for the first calls gets no more at a time', (t) => {
  const pace = new BatchPace();
  for (let i = 0; i < 50; i += 1) pace.noteCall(pace.inputs, 4_000, vendorLimit);
  t.deepEqual([pace.inputs, pace.calls], [128, 8]);
});

test('slow calls become smaller and fewer, down to 2 calls of 16 inputs, and grow again', (t) => {
  const pace = new BatchPace();
  pace.noteCall(128, 7_000, vendorLimit);
  t.deepEqual([pace.inputs, pace.calls], [64, 4]);
  pace.noteSlowCall(64);
  pace.noteSlowCall(32);
  pace.noteSlowCall(16);
  t.deepEqual([pace.inputs, pace.calls], [16, 2]);
  pace.noteCall(16, 500, vendorLimit);
  t.deepEqual([pace.inputs, pace.calls], [32, 3]);
});
