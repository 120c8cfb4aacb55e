import type { Setting } from '../../admin/accounts/account-draft.ts';

/** Settings that are changed together. */
export const settingsGroups = {
  owner: ['name', 'email', 'note'],
  limits: ['requests_per_minute', 'tokens_per_minute', 'max_queued_jobs', 'weight'],
  money: ['budget', 'low_balance'],
  access: ['models', 'addresses', 'expires_at'],
} as const satisfies Readonly<Record<string, readonly Setting[]>>;

export type SettingsGroup = keyof typeof settingsGroups;
