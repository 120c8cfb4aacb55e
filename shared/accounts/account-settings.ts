// decision 0096
import { writeAddressRanges } from './address-ranges.ts';
import { writeBudget, type Budget, type HotBudget } from './budget-periods.ts';

/** Who an account belongs to, and what it may do. Fields that were never set, or were cleared, are absent. */
export interface AccountSettings {
  readonly name?: string;
  readonly email?: string;
  readonly note?: string;
  readonly budget?: Budget;
  /** The owner's own budget. It is enforced beside the operator's. */
  readonly ownerBudget?: Budget;
  /** Ids of the models that the account may use. */
  readonly models?: readonly string[];
  /** Of those, the models that the owner allows. */
  readonly ownerModels?: readonly string[];
  /** Addresses and networks that the key may be used from. */
  readonly addresses?: readonly string[];
  /** When the key stops working. */
  readonly expiresAt?: Date;
  readonly tokensPerMinute?: number;
  /** The owner is told by mail when the balance falls below this. */
  readonly lowBalanceNano?: bigint;
}

/** New values of settings. Null clears one; absent ones stay. */
export type SettingsChange = {
  readonly [Name in keyof AccountSettings]?: NonNullable<AccountSettings[Name]> | null;
};

export const settingNames = [
  'name',
  'email',
  'note',
  'budget',
  'ownerBudget',
  'models',
  'ownerModels',
  'addresses',
  'expiresAt',
  'tokensPerMinute',
  'lowBalanceNano',
] as const satisfies readonly (keyof AccountSettings)[];

/** What restricts an account, as stored in Redis. */
export interface Restrictions {
  readonly budget: HotBudget | null;
  readonly ownerBudget: HotBudget | null;
  readonly models: readonly string[] | null;
  readonly ownerModels: readonly string[] | null;
  readonly addresses: readonly string[] | null;
  readonly expiresAt: Date | null;
  readonly tokensPerMinute: number | null;
  readonly lowBalanceNano: bigint | null;
}

/** Between names in a field, and around them. No id of the catalog has a comma. */
const separator = ',';
const writeList = (names: readonly string[] | undefined): string =>
  names === undefined ? '' : `${separator}${names.map((name) => `${name}${separator}`).join('')}`;
export const parseList = (text: string | null | undefined): string[] | null =>
  text === null || text === undefined ? null : text.split(separator).filter((name) => name !== '');

/**
 * Returns the fields of an account in Redis that its settings determine, except its budgets; '' for a field that is
 * absent. `ext` shows that the scripts must read the others (restrictions.lua).
 */
export function toSettingFields(settings: AccountSettings): Readonly<Record<string, string>> {
  const { addresses, expiresAt, tokensPerMinute, lowBalanceNano } = settings;
  const enforced = {
    exp: expiresAt === undefined ? '' : String(expiresAt.getTime()),
    adr: addresses === undefined ? '' : writeAddressRanges(addresses),
    mod: writeList(settings.models),
    omod: writeList(settings.ownerModels),
    tpm: tokensPerMinute === undefined ? '' : String(tokensPerMinute),
  };
  const isRestricted =
    settings.budget !== undefined ||
    settings.ownerBudget !== undefined ||
    Object.values(enforced).some((value) => value !== '');
  return {
    ...enforced,
    ext: isRestricted ? '1' : '',
    adt: writeList(addresses),
    low: lowBalanceNano === undefined ? '' : lowBalanceNano.toString(),
  };
}

/** Returns the budgets as passed to restore.lua; '' for none. */
export const toBudgetFields = ({ budget, ownerBudget }: AccountSettings) => ({
  bud: writeBudget(budget),
  obud: writeBudget(ownerBudget),
});

/** Whether a change has settings, which are copied to Redis together. */
export const changesSettings = (change: SettingsChange): boolean =>
  settingNames.some((name) => change[name] !== undefined);
