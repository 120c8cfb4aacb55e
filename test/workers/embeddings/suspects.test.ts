import test from 'ava';
import { Suspects } from '../../../workers/embeddings/suspects.ts';

test('an account is suspect for a minute from the last refusal', (t) => {
  let nowMs = 5;
  const suspects = new Suspects(() => nowMs);
  t.false(suspects.has('ann'));
  suspects.add('ann');
  nowMs += 30_000;
  suspects.add('bob');
  suspects.add('ann');
  nowMs += 59_999;
  t.true(suspects.has('ann'));
  t.true(suspects.has('bob'));
  t.false(suspects.has('carol'));
  nowMs += 1;
  t.false(suspects.has('ann'));
  suspects.add('carol');
  t.false(suspects.has('bob'));
  t.true(suspects.has('carol'));
});
