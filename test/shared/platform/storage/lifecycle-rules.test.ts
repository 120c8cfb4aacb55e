import type { LifecycleRule } from '@aws-sdk/client-s3';
import test from 'ava';
import {
  hasExpirations,
  mergeRules,
  omitUploads,
} from '../../../../shared/platform/storage/lifecycle-rules.ts';

const theirs: LifecycleRule = {
  ID: 'logs',
  Status: 'Enabled',
  Filter: { Tag: { Key: 'kind', Value: 'log' } },
  Transitions: [{ Days: 30, StorageClass: 'GLACIER' }],
};
const describe = (rules: readonly LifecycleRule[] | null): unknown =>
  rules?.map(({ ID, Filter, Expiration, AbortIncompleteMultipartUpload: uploads }) => [
    ID,
    Filter?.Prefix,
    Expiration?.Days,
    uploads?.DaysAfterInitiation,
  ]);

const ours = [
  ['model-gateway-files', 'files/', 1, undefined],
  ['model-gateway-answers', 'answers/', 1, undefined],
  ['model-gateway-batch-files', 'batch-files/', 31, 1],
];

test('our rules apply only to our folders, and are added to the existing rules of others', (t) => {
  t.deepEqual(describe(mergeRules([])), ours);
  const merged = mergeRules([theirs])!;
  t.deepEqual(merged[0], theirs);
  t.deepEqual(describe(merged.slice(1)), ours);
});

test('up-to-date rules are not written again, but a changed rule is', (t) => {
  const merged = mergeRules([theirs])!;
  t.is(mergeRules(merged), null);
  const changed = merged.map((rule) =>
    rule.ID === 'model-gateway-files' ? { ...rule, Status: 'Disabled' as const } : rule,
  );
  const repaired = mergeRules(changed)!;
  t.is(repaired.length, 4);
  t.true(repaired.every(({ Status }) => Status === 'Enabled'));
});

test('a bucket with the rules of an earlier version gets the new one, and the old ones stay as they are', (t) => {
  const earlier = mergeRules([theirs])!.slice(0, 3);
  const merged = mergeRules(earlier)!;
  t.deepEqual(merged.slice(0, 3), earlier);
  t.deepEqual(describe(merged.slice(3)), ours.slice(2));
  t.false(hasExpirations(earlier));
});

test('a bucket whose server does not abort uploads by rule still deletes all objects', (t) => {
  const limited = omitUploads(mergeRules([theirs])!);
  t.deepEqual(limited[0], theirs);
  t.deepEqual(
    describe(limited.slice(1)),
    ours.map(([id, prefix, days]) => [id, prefix, days, undefined]),
  );
  t.true(hasExpirations(limited));
  // The rule is written again at each start, in case the server can apply it by then.
  t.is(mergeRules(limited)?.length, 4);
});
