import type { AccountDocument } from '../../shared/accounts/account-store.ts';
import { changesSettings, type SettingsChange } from '../../shared/accounts/account-settings.ts';
import {
  readAccountSettings,
  type BudgetInput,
  type FindModelId,
  type SettingsInput,
} from '../../shared/accounts/read-account-settings.ts';
import { updateAccount } from '../../shared/admin/accounts.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { formatRub } from '../../shared/encoding/money.ts';
import {
  CommandError,
  UsageError,
  type AdminContext,
  type AdminVerb,
  type ChangeContext,
} from './command.ts';
import { findAccountId } from './find-account.ts';
import { withCatalog } from './with-catalog.ts';

export const updateOptions: Pick<AdminVerb, 'usage' | 'help' | 'positionals' | 'options'> = {
  usage:
    '<account> [--name x] [--email x] [--note x] [--budget 500] [--budget-period daily|weekly|monthly] [--models a,b] ' +
    '[--addresses 10.0.0.0/8] [--expires 2027-01-01] [--tpm 100000] [--low-balance 50]',
  help: 'says who it belongs to, and limits what it may do; "none" clears a setting',
  positionals: 1,
  options: [
    'name',
    'email',
    'note',
    'budget',
    'budget-period',
    'models',
    'addresses',
    'expires',
    'tpm',
    'low-balance',
  ],
};

/** Changes the settings of an account. @returns its id */
export async function updateSettings(context: ChangeContext): Promise<string> {
  const { accounts, options, trail } = context;
  if (Object.keys(options).every((name) => name === 'reason'))
    throw new UsageError('Specify what to change, for example --budget 500 --budget-period monthly.');
  const id = await findAccountId(context);
  const input = readOptions(options, await accounts.findById(id));
  const change = await withModels(context, input, (findModelId) => readChange(input, findModelId));
  if (changesSettings(change)) await updateAccount(context, trail, id, change);
  return id;
}

function readChange(input: SettingsInput, findModelId: FindModelId): SettingsChange {
  try {
    return readAccountSettings(input, findModelId);
  } catch (error) {
    if (error instanceof AppError && error.code === 'validation_failed')
      throw new CommandError(error.message);
    throw error;
  }
}

/** Opens the catalog only if the settings name models. */
async function withModels<T>(
  context: AdminContext,
  { models }: SettingsInput,
  use: (findModelId: FindModelId) => T,
): Promise<T> {
  if (!Array.isArray(models)) return use(() => null);
  return await withCatalog(context, (catalog) => use((name) => catalog.find(name)?.id ?? null));
}

function readOptions(options: AdminContext['options'], stored: AccountDocument | null): SettingsInput {
  const input: Record<string, unknown> = {};
  const set = (field: keyof SettingsInput, name: string, read: (text: string) => unknown): void => {
    const text = options[name];
    if (text !== undefined) input[field] = text === 'none' ? null : read(text);
  };
  const asText = (text: string): string => text;
  const asList = (text: string): string[] => text.split(',').map((item) => item.trim());
  set('name', 'name', asText);
  set('email', 'email', asText);
  set('note', 'note', asText);
  set('models', 'models', asList);
  set('addresses', 'addresses', asList);
  set('expires_at', 'expires', asText);
  set('tokens_per_minute', 'tpm', Number);
  set('low_balance', 'low-balance', asText);
  if (options['budget'] !== undefined || options['budget-period'] !== undefined)
    input['budget'] = readBudget(options, stored);
  return input;
}

/** Of an amount and a period, one may be given alone if the account has a budget already. */
function readBudget(options: AdminContext['options'], stored: AccountDocument | null): BudgetInput | null {
  if (options['budget'] === 'none') return null;
  const current = stored?.budget;
  const amount = options['budget'] ?? (current && formatRub(current.amountNano));
  const period = options['budget-period'] ?? current?.period;
  if (amount === undefined) throw new UsageError('--budget is required: the account has no budget yet.');
  if (period === undefined)
    throw new UsageError(
      '--budget-period is required: the account has no budget yet. It is daily, weekly or monthly.',
    );
  return { amount, period };
}
