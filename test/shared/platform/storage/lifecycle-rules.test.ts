import type { LifecycleRule } from '@aws-sdk/client-s3';
import test from 'ava';
import { isOurRule, mergeRules } from '../../../../shared/platform/storage/lifecycle-rules.ts';

const theirs: LifecycleRule = {
  ID: 'logs',
  Status: 'Enabled',
  Filter: { Tag: { Key: 'kind', Value: 'log' } },
  Transitions: [{ Days: 30, StorageClass: 'GLACIER' }],
};
const former: LifecycleRule = {
  ID: 'expire-after-a-day',
  Status: 'Enabled',
  Filter: { Prefix: '' },
  Expiration: { Days: 1 },
};

const describe = (rules: readonly LifecycleRule[] | null): unknown =>
  rules?.map(({ ID, Filter, Expiration }) => [ID, Filter?.Prefix, Expiration?.Days]);

const ours = [
  ['model-gateway-files', 'files/', 1],
  ['model-gateway-answers', 'answers/', 1],
];

test('our rules apply only to our folders, and are added to the existing rules of others', (t) => {
  t.deepEqual(describe(mergeRules([], false)), ours);
  const merged = mergeRules([theirs], false)!;
  t.deepEqual(merged[0], theirs);
  t.deepEqual(describe(merged.slice(1)), ours);
});

test('up-to-date rules are not written again, but a changed rule is', (t) => {
  const merged = mergeRules([theirs], false)!;
  t.is(mergeRules(merged, false), null);
  const changed = merged.map((rule) =>
    rule.ID === 'model-gateway-files' ? { ...rule, Status: 'Disabled' as const } : rule,
  );
  const repaired = mergeRules(changed, false)!;
  t.is(repaired.length, 3);
  t.true(repaired.every(({ Status }) => Status === 'Enabled'));
});

test('our former rule for the whole bucket is removed once no image needs it', (t) => {
  t.deepEqual(describe(mergeRules([former], false)), ours);
  const kept = mergeRules([former], true)!;
  t.deepEqual(kept[0], former);
  t.is(mergeRules(kept, true), null);
  t.deepEqual(describe(mergeRules(kept, false)), ours);
});

test("a bucket owner's rule with the name of our former rule is not deleted, unless it is identical to it", (t) => {
  const { Filter: _, ...unfiltered } = former;
  for (const same of [former, unfiltered, { ...unfiltered, Prefix: '' }, { ...former, Filter: {} }])
    t.true(isOurRule(same), JSON.stringify(same));
  const others: LifecycleRule[] = [
    { ...unfiltered, Prefix: 'tmp/' },
    { ...former, Filter: { Prefix: 'tmp/' } },
    { ...former, Filter: { Tag: { Key: 'kind', Value: 'log' } } },
    { ...former, Filter: { And: { Prefix: '', ObjectSizeGreaterThan: 1 } } },
    { ...former, Expiration: { Days: 7 } },
  ];
  for (const other of others) {
    t.false(isOurRule(other), JSON.stringify(other));
    t.deepEqual(mergeRules([other], false)![0], other);
  }
});
