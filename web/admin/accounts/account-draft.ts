import { readAmount } from '../../lib/read-amount.ts';
import { fromZoned, toZoned } from '../../lib/zoned-time.ts';
import type { Schema } from '../api.ts';

export type Account = Schema<'AdminAccount'>;
export type NewAccount = Schema<'CreateAccountRequest'>;
export type AccountChange = Schema<'UpdateAccountRequest'>;

export type Period = NonNullable<Account['budget']>['period'];
export const periods: readonly Period[] = ['daily', 'weekly', 'monthly'];

/** The settings of an account as they are typed, by the API's names. Empty for one that is not set. */
export interface AccountDraft {
  readonly name: string;
  readonly email: string;
  readonly note: string;
  /** Of a new account: what it begins with. */
  readonly balance: string;
  readonly free_requests: string;
  readonly user_type: string;
  readonly requests_per_minute: string;
  readonly tokens_per_minute: string;
  /** The amount. */
  readonly budget: string;
  readonly period: Period;
  readonly models: readonly string[];
  /** One a line. */
  readonly addresses: string;
  /** `2026-11-29T14:30`, in the operator's time zone. */
  readonly expires_at: string;
  readonly low_balance: string;
  readonly max_queued_jobs: string;
  readonly weight: string;
}

/** A setting that is checked and sent by itself. */
export type Setting = Exclude<keyof AccountDraft, 'period'>;

export const emptyDraft: AccountDraft = {
  name: '',
  email: '',
  note: '',
  balance: '',
  free_requests: '',
  user_type: '',
  requests_per_minute: '',
  tokens_per_minute: '',
  budget: '',
  period: 'monthly',
  models: [],
  addresses: '',
  expires_at: '',
  low_balance: '',
  max_queued_jobs: '',
  weight: '',
};

const write = (value: number | string | null): string => (value === null ? '' : String(value));

/** Begins to change an account. */
export const beginDraft = (account: Account, timeZone: string): AccountDraft => ({
  ...emptyDraft,
  name: write(account.name),
  email: write(account.email),
  note: write(account.note),
  requests_per_minute: write(account.requests_per_minute),
  tokens_per_minute: write(account.tokens_per_minute),
  budget: write(account.budget?.amount ?? null),
  period: account.budget?.period ?? 'monthly',
  models: account.models ?? [],
  addresses: (account.addresses ?? []).join('\n'),
  expires_at: toZoned(account.expires_at ?? undefined, timeZone),
  low_balance: write(account.low_balance),
  max_queued_jobs: write(account.max_queued_jobs),
  weight: write(account.weight),
});

/** What is wrong with a setting. The bounds are those of the API. */
export type Problem =
  | { readonly text: 'wrongCount'; readonly min: number; readonly max: number }
  | { readonly text: 'wrongAmount' | 'wrongCredit' | 'nothingToCredit' | 'wrongEmail' | 'tooManyAddresses' };
export type Problems = { readonly [Name in Setting]?: Problem };

const maxAmount = 9_000_000;
const maxAddresses = 100;

interface Bounds {
  readonly min: number;
  readonly max: number;
}

export const countBounds = {
  free_requests: { min: 0, max: 1_000_000_000 },
  requests_per_minute: { min: 1, max: 1_000_000 },
  tokens_per_minute: { min: 1, max: 1_000_000_000 },
  max_queued_jobs: { min: 0, max: 1_000_000_000 },
  weight: { min: 1, max: 100 },
} as const satisfies { readonly [Name in Setting]?: Bounds };

/** Reads a whole number, also with spaces between its digits. Null if it is none, or is out of bounds. */
export function readCount(text: string, { min, max }: Bounds): number | null {
  const digits = text.replaceAll(/\s/g, '').replace(/^[−–]/, '-');
  const count = /^-?\d{1,10}$/.test(digits) ? Number(digits) : null;
  return count !== null && count >= min && count <= max ? count : null;
}

type Reading = { readonly value: unknown } | { readonly problem: Problem };

const ok = (value: unknown): Reading => ({ value });
const wrong = (problem: Problem): Reading => ({ problem });

function readMoney(text: string): Reading {
  const amount = readAmount(text);
  return amount === null || Number(amount) > maxAmount ? wrong({ text: 'wrongAmount' }) : ok(Number(amount));
}

function readBudget(text: string, { period }: AccountDraft): Reading {
  const amount = readMoney(text);
  return 'problem' in amount ? amount : ok({ amount: amount.value, period });
}

const readEmail = (text: string): Reading =>
  /^[^\s@]+@[^\s@]+$/.test(text) ? ok(text) : wrong({ text: 'wrongEmail' });

function readAddresses(text: string): Reading {
  const addresses = text.split(/[\s,;]+/).filter((address) => address !== '');
  return addresses.length > maxAddresses ? wrong({ text: 'tooManyAddresses' }) : ok(addresses);
}

const countWithin =
  (bounds: Bounds) =>
  (text: string): Reading => {
    const count = readCount(text, bounds);
    return count === null ? wrong({ text: 'wrongCount', ...bounds }) : ok(count);
  };

type TextReader = (text: string, draft: AccountDraft, timeZone: string) => Reading;

const readers: { readonly [Name in Exclude<Setting, 'models'>]: TextReader } = {
  name: ok,
  email: readEmail,
  note: ok,
  balance: readMoney,
  user_type: ok,
  budget: readBudget,
  addresses: readAddresses,
  expires_at: (text, _draft, timeZone) => ok(fromZoned(text, timeZone)),
  low_balance: readMoney,
  free_requests: countWithin(countBounds.free_requests),
  requests_per_minute: countWithin(countBounds.requests_per_minute),
  tokens_per_minute: countWithin(countBounds.tokens_per_minute),
  max_queued_jobs: countWithin(countBounds.max_queued_jobs),
  weight: countWithin(countBounds.weight),
};

/** Null for a setting that is cleared, or has its default. */
function readSetting(setting: Setting, draft: AccountDraft, timeZone: string): Reading {
  if (setting === 'models') return ok(draft.models.length === 0 ? null : draft.models);
  const text = draft[setting].trim();
  return text === '' ? ok(null) : readers[setting](text, draft, timeZone);
}

const isRequired = (setting: Setting): setting is 'requests_per_minute' | 'max_queued_jobs' | 'weight' =>
  setting === 'requests_per_minute' || setting === 'max_queued_jobs' || setting === 'weight';

/** Checks settings as the API does, as far as a page can. @param isNew whether empty ones get their defaults */
export function findProblems(draft: AccountDraft, settings: readonly Setting[], isNew: boolean): Problems {
  const problems: { [Name in Setting]?: Problem } = {};
  for (const setting of settings) {
    const reading = readSetting(setting, draft, 'UTC');
    if ('problem' in reading) problems[setting] = reading.problem;
    else if (reading.value === null && isRequired(setting) && !isNew)
      problems[setting] = { text: 'wrongCount', ...countBounds[setting] };
  }
  return problems;
}

const valueOf = (setting: Setting, draft: AccountDraft, timeZone: string): unknown => {
  const reading = readSetting(setting, draft, timeZone);
  return 'value' in reading ? reading.value : null;
};

/** Returns the new account that a draft without problems means. */
export function writeNewAccount(
  draft: AccountDraft,
  settings: readonly Setting[],
  timeZone: string,
): NewAccount {
  const values = settings.map((setting) => [setting, valueOf(setting, draft, timeZone)] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== null));
}

/** Returns what a draft without problems changes: settings that stay the same are left out, null clears one. */
export function writeChange(
  before: AccountDraft,
  draft: AccountDraft,
  settings: readonly Setting[],
  timeZone: string,
): AccountChange {
  const isChanged = (setting: Setting): boolean =>
    JSON.stringify(valueOf(setting, before, timeZone)) !== JSON.stringify(valueOf(setting, draft, timeZone));
  return Object.fromEntries(
    settings.filter(isChanged).map((setting) => [setting, valueOf(setting, draft, timeZone)]),
  );
}
