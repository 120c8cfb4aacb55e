// decision 0096
import { invalidField } from '../contract/errors.ts';
import { isPlainText } from '../contract/plain-text.ts';
import { normalizeEmail } from '../encoding/email-address.ts';
import { maxBalanceNano, parseRub } from '../encoding/money.ts';
import type { SettingsChange } from './account-settings.ts';
import { parseAddressRange } from './address-ranges.ts';
import { budgetPeriods, type Budget, type BudgetPeriod } from './budget-periods.ts';

export const maxNameLength = 200;
export const maxNoteLength = 2_000;
export const maxModels = 500;
export const maxAddresses = 100;
export const maxTokensPerMinute = 1_000_000_000;
const maxModelLength = 200;

/** An amount of roubles: a number, or the same as a decimal. */
export type RubInput = number | string;

export interface BudgetInput {
  readonly amount: RubInput;
  readonly period: string;
}

/** Settings as the API takes them and commands build them. Null clears one; absent ones stay. */
export interface SettingsInput {
  readonly name?: string | null;
  readonly email?: string | null;
  readonly note?: string | null;
  readonly budget?: BudgetInput | null;
  readonly models?: readonly string[] | null;
  readonly addresses?: readonly string[] | null;
  /** A date, or a time with its offset, as in RFC 3339. A date is its beginning in UTC. */
  readonly expires_at?: string | null;
  readonly tokens_per_minute?: number | null;
  readonly low_balance?: RubInput | null;
}

/** The settings of an account that its owner may change. */
export type OwnerSettingsInput = Pick<SettingsInput, 'budget' | 'models' | 'low_balance'>;

/** Returns the catalog's id of a model, or null if there is none. */
export type FindModelId = (name: string) => string | null;

/**
 * Checks settings that an operator sets.
 * @throws AppError `validation_failed`, with the field
 */
export function readAccountSettings(input: SettingsInput, findModelId: FindModelId): SettingsChange {
  const { name, email, note, addresses, expires_at: expires, tokens_per_minute: tokens } = input;
  return withoutUndefined({
    name: unlessCleared(name, (text) => readLine('name', text, maxNameLength)),
    email: unlessCleared(email, readEmail),
    note: unlessCleared(note, (text) => readLine('note', text, maxNoteLength)),
    budget: unlessCleared(input.budget, readBudget),
    models: unlessCleared(input.models, (names) => readModels(names, findModelId)),
    addresses: unlessCleared(addresses, readAddresses),
    expiresAt: unlessCleared(expires, readTime),
    tokensPerMinute: unlessCleared(tokens, readTokens),
    lowBalanceNano: unlessCleared(input.low_balance, (amount) => readAmount(['low_balance'], amount)),
  });
}

/** Checks settings that the owner of an account sets. @throws AppError `validation_failed`, with the field */
export function readOwnerSettings(input: OwnerSettingsInput, findModelId: FindModelId): SettingsChange {
  return withoutUndefined({
    ownerBudget: unlessCleared(input.budget, readBudget),
    ownerModels: unlessCleared(input.models, (names) => readModels(names, findModelId)),
    lowBalanceNano: unlessCleared(input.low_balance, (amount) => readAmount(['low_balance'], amount)),
  });
}

const unlessCleared = <I, O>(value: I | null | undefined, read: (value: I) => O): O | null | undefined =>
  value === null || value === undefined ? (value as null | undefined) : read(value);

const withoutUndefined = (change: {
  readonly [Name in keyof SettingsChange]: SettingsChange[Name] | undefined;
}): SettingsChange => Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));

function readLine(field: string, text: string, maxLength: number): string {
  if (text === '' || text.length > maxLength)
    throw invalidField(['body', field], `must have 1 to ${maxLength} characters; null clears it`);
  if (!isPlainText(text))
    throw invalidField(
      ['body', field],
      'must be one line of text with at least one visible character and without control characters',
    );
  return text;
}

function readEmail(text: string): string {
  const result = normalizeEmail(text);
  if ('email' in result) return result.email;
  throw invalidField(['body', 'email'], result.problemEn, { msgRu: result.problemRu });
}

function readAmount(path: readonly string[], amount: RubInput): bigint {
  const nano = parseRub(amount);
  if (nano !== null && nano >= 0n && nano <= maxBalanceNano) return nano;
  throw invalidField(
    ['body', ...path],
    'must be an amount from 0 to 9 000 000 roubles with at most nine decimals',
  );
}

const isPeriod = (text: string): text is BudgetPeriod => budgetPeriods.some((period) => period === text);

function readBudget({ amount, period }: BudgetInput): Budget {
  if (!isPeriod(period))
    throw invalidField(['body', 'budget', 'period'], `must be one of: ${budgetPeriods.join(', ')}`);
  return { amountNano: readAmount(['budget', 'amount'], amount), period };
}

function readModels(names: readonly string[], findModelId: FindModelId): string[] {
  checkCount('models', names, maxModels);
  const ids = names.map((name, i) => {
    const id = name.length > maxModelLength ? null : findModelId(name);
    if (id !== null) return id;
    const shown = JSON.stringify(name.slice(0, maxModelLength));
    throw invalidField(['body', 'models', i], `${shown} is not a model: GET /v1/models lists them`);
  });
  return [...new Set(ids)];
}

function readAddresses(list: readonly string[]): string[] {
  checkCount('addresses', list, maxAddresses);
  for (const [i, text] of list.entries()) {
    if (parseAddressRange(text) !== null) continue;
    const shown = JSON.stringify(text.slice(0, 60));
    throw invalidField(
      ['body', 'addresses', i],
      `${shown} must be an address, or a network such as 10.0.0.0/8 or 2001:db8::/32 without bits after its prefix`,
    );
  }
  return [...list];
}

function checkCount(field: string, list: readonly string[], max: number): void {
  if (list.length === 0 || list.length > max)
    throw invalidField(['body', field], `must have 1 to ${max} entries; null clears it`);
}

/** A date, or a time with seconds and its offset. */
const timeText = /^\d{4}-\d\d-\d\d(?:[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d))?$/;

function readTime(text: string): Date {
  const time = timeText.test(text) ? new Date(text.toUpperCase()) : new Date(Number.NaN);
  // The Date constructor takes the 30th of February for the 1st or 2nd of March.
  const isDay = Number.isFinite(time.getTime()) && isCalendarDay(text.slice(0, 10));
  if (isDay) return time;
  throw invalidField(
    ['body', 'expires_at'],
    'must be a date such as 2027-01-01, or a time such as 2027-01-01T12:00:00Z',
  );
}

const isCalendarDay = (text: string): boolean =>
  new Date(`${text}T00:00:00Z`).toISOString().slice(0, 10) === text;

function readTokens(tokens: number): number {
  if (Number.isInteger(tokens) && tokens >= 1 && tokens <= maxTokensPerMinute) return tokens;
  throw invalidField(
    ['body', 'tokens_per_minute'],
    `must be a whole number from 1 to ${maxTokensPerMinute}; null clears it`,
  );
}
