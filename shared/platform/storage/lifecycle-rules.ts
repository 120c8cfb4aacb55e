import type { LifecycleRule } from '@aws-sdk/client-s3';
import { filePrefix } from './file-name.ts';

/** Folder of stored responses. Only the lifecycle rule deletes them. */
export const answerPrefix = 'answers/';

const expireAfterADay = (id: string, prefix: string): LifecycleRule => ({
  ID: id,
  Status: 'Enabled',
  Filter: { Prefix: prefix },
  Expiration: { Days: 1 },
});

const ourRules: readonly LifecycleRule[] = [
  expireAfterADay('model-gateway-files', filePrefix),
  expireAfterADay('model-gateway-answers', answerPrefix),
];

/** The id of an earlier version's rule. It applied to the whole bucket and overwrote all other rules. */
const formerRuleId = 'expire-after-a-day';

/**
 * Returns whether an earlier version wrote the rule. Checks more than its id, because the bucket's owner may have a rule
 * with the same id. We must not delete that rule, or treat a bucket as ours because of it.
 */
export const isFormerRule = ({ ID, Filter = {}, Prefix = '', Expiration }: LifecycleRule): boolean =>
  ID === formerRuleId &&
  Prefix === '' &&
  Object.values({ ...Filter, Prefix: Filter.Prefix || undefined }).every((value) => value === undefined) &&
  Expiration?.Days === 1;

/** Returns whether this or an earlier version wrote the rule. */
export const isOurRule = (rule: LifecycleRule): boolean =>
  isFormerRule(rule) || ourRules.some(({ ID }) => ID === rule.ID);

/**
 * Merges our rules into the bucket's rules. Other rules stay unchanged.
 * @param keepFormer whether images of an earlier version still need the rule for the whole bucket
 * @returns null if nothing needs to change
 */
export function mergeRules(current: readonly LifecycleRule[], keepFormer: boolean): LifecycleRule[] | null {
  const missing = ourRules.filter((rule) => !current.some((other) => isSameRule(rule, other)));
  const keptRules = current.filter(
    (rule) => !missing.some(({ ID }) => ID === rule.ID) && (keepFormer || !isFormerRule(rule)),
  );
  return missing.length === 0 && keptRules.length === current.length ? null : [...keptRules, ...missing];
}

const isSameRule = (ours: LifecycleRule, other: LifecycleRule): boolean =>
  other.ID === ours.ID &&
  other.Status === ours.Status &&
  other.Filter?.Prefix === ours.Filter?.Prefix &&
  other.Expiration?.Days === ours.Expiration?.Days;
