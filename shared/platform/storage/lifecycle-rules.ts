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

const isSameRule = (ours: LifecycleRule, other: LifecycleRule): boolean =>
  other.ID === ours.ID &&
  other.Status === ours.Status &&
  other.Filter?.Prefix === ours.Filter?.Prefix &&
  other.Expiration?.Days === ours.Expiration?.Days;
