import type { LifecycleRule } from '@aws-sdk/client-s3';
import test from 'ava';
import { mergeRules } from '../../../../shared/platform/storage/lifecycle-rules.ts';

const theirs: LifecycleRule = {
  ID: 'logs',
  Status: 'Enabled',
  Filter: { Tag: { Key: 'kind', Value: 'log' } },
  Transitions: [{ Days: 30, StorageClass: 'GLACIER' }],
};
const describe = (rules: readonly LifecycleRule[] | null): unknown =>
  rules?.map(({ ID, Filter, Expiration }) => [ID, Filter?.Prefix, Expiration?.Days]);

const ours = [
  ['model-gateway-files', 'files/', 1],
  ['model-gateway-answers', 'answers/', 1],
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
  t.is(repaired.length, 3);
  t.true(repaired.every(({ Status }) => Status === 'Enabled'));
});
