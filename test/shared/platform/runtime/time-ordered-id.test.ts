import test from 'ava';
import { validate, version } from 'uuid';
import { createTimeOrderedId } from '../../../../shared/platform/runtime/time-ordered-id.ts';

test('ids are UUIDs of version 7, never repeated, and each sorts after those before it', (t) => {
  // These are too many ids for one millisecond, and for one batch of random bytes.
  const ids = Array.from({ length: 20_000 }, createTimeOrderedId);
  t.true(ids.every((id) => validate(id) && version(id) === 7));
  t.is(new Set(ids).size, ids.length);
  t.deepEqual(ids.toSorted(), ids);
});

test('an id contains the millisecond in which it was created', (t) => {
  const before = Date.now();
  const id = createTimeOrderedId();
  const ms = Number.parseInt(id.replace('-', '').slice(0, 12), 16);
  t.true(ms >= before && ms <= Date.now());
});
