import type { LifecycleRule } from '@aws-sdk/client-s3';
import { apiFilePrefix, filePrefix } from './file-name.ts';

/** Folder of stored responses. Only the lifecycle rule deletes them. */
export const answerPrefix = 'answers/';

const expire = (id: string, prefix: string, days: number): LifecycleRule => ({
  ID: id,
  Status: 'Enabled',
  Filter: { Prefix: prefix },
  Expiration: { Days: days },
});

const ourRules: readonly LifecycleRule[] = [
  expire('model-gateway-files', filePrefix, 1),
  expire('model-gateway-answers', answerPrefix, 1),
  // One rule for both actions: a server that ignores the second would reject a rule that has only the second.
  {
    ...expire('model-gateway-batch-files', apiFilePrefix, 31),
    AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 },
  },
];

/** Returns whether we wrote the rule. */
export const isOurRule = (rule: LifecycleRule): boolean => ourRules.some(({ ID }) => ID === rule.ID);

/**
 * Merges our rules into the bucket's rules. Other rules stay unchanged.
 * @returns null if nothing needs to change
 */
export function mergeRules(current: readonly LifecycleRule[]): LifecycleRule[] | null {
  const missing = ourRules.filter((rule) => !current.some((other) => isSameRule(rule, other)));
  if (missing.length === 0) return null;
  return [...current.filter((rule) => !missing.some(({ ID }) => ID === rule.ID)), ...missing];
}

/**
 * Returns whether the bucket deletes our objects by rule. Unfinished uploads do not count: some servers cannot abort
 * them by rule, and workers do it, too.
 */
export const hasExpirations = (current: readonly LifecycleRule[]): boolean =>
  ourRules.every((rule) => current.some((other) => isSameExpiration(rule, other)));

/** Removes from our rules what some servers reject. Workers do it, too. */
export const omitUploads = (rules: readonly LifecycleRule[]): LifecycleRule[] =>
  rules.map((rule) => {
    if (!isOurRule(rule)) return rule;
    const { AbortIncompleteMultipartUpload: _, ...others } = rule;
    return others;
  });

const isSameRule = (ours: LifecycleRule, other: LifecycleRule): boolean =>
  isSameExpiration(ours, other) &&
  other.AbortIncompleteMultipartUpload?.DaysAfterInitiation ===
    ours.AbortIncompleteMultipartUpload?.DaysAfterInitiation;

const isSameExpiration = (ours: LifecycleRule, other: LifecycleRule): boolean =>
  other.ID === ours.ID &&
  other.Status === ours.Status &&
  other.Filter?.Prefix === ours.Filter?.Prefix &&
  other.Expiration?.Days === ours.Expiration?.Days;
