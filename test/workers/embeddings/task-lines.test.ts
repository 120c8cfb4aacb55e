import test from 'ava';
import { TaskLines } from '../../../workers/embeddings/task-lines.ts';

test('inputs with the same number are in one line, whatever the numbers are', (t) => {
  const lines = new TaskLines([3, 3, 4, 900_000, 900_000, 900_000], 6);
  t.is(lines.count, 3);
  t.deepEqual(
    [0, 1, 2, 3, 4, 5].map((input) => lines.indexOf(input)),
    [0, 0, 1, 2, 2, 2],
  );
  t.deepEqual(
    [0, 1, 2].map((line) => lines.rangeOf(line)),
    [
      { start: 0, end: 2 },
      { start: 2, end: 3 },
      { start: 3, end: 6 },
    ],
  );
  t.deepEqual([...lines.countInputs()], [2, 1, 3]);
});

test('without numbers, all inputs are in one line', (t) => {
  const lines = new TaskLines(undefined, 5);
  t.is(lines.count, 1);
  t.is(lines.indexOf(4), 0);
  t.deepEqual(lines.rangeOf(0), { start: 0, end: 5 });
  t.deepEqual([...lines.countInputs()], [5]);
});
