import Type from 'typebox';
import { budgetPeriods } from '../../../shared/accounts/budget-periods.ts';
import {
  maxAddresses,
  maxModels,
  maxNameLength,
  maxNoteLength,
  maxTokensPerMinute,
} from '../../../shared/accounts/read-account-settings.ts';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { maxAmount, Moment, OptionalMoment, Roubles } from './fields.ts';

const Period = StringEnum(budgetPeriods, {
  description: 'Periods begin at 00:00 UTC, weeks on Monday, months on the first.',
});
const Names = (description: string) => Nullable(Type.Array(Type.String(), { description }));

const BudgetState = (description: string) =>
  Nullable(
    Type.Object(
      {
        amount: Roubles('How much the account may spend in each period, in roubles.'),
        period: Period,
        spent: Roubles('Spent in the current period, in roubles.'),
        reserved: Roubles('Reserved for requests in progress, in roubles.'),
        resets_at: Moment('When the next period begins.'),
      },
      { description },
    ),
  );

/** The settings of an account, as operators see them. Null for one that is not set. */
export const settingFields = {
  name: Nullable(Type.String({ description: 'Who it belongs to.' })),
  email: Nullable(Type.String({ description: 'An address of its owner.' })),
  note: Nullable(Type.String({ description: 'For operators.' })),
  budget: BudgetState('What it may spend.'),
  owner_budget: BudgetState('What its owner allows it to spend. Both apply.'),
  models: Names('The models that it may use.'),
  owner_models: Names('The models that its owner allows. Both apply.'),
  addresses: Names('The addresses and networks that its key may be used from.'),
  expires_at: OptionalMoment('When its key stops working.'),
  tokens_per_minute: Nullable(Type.Integer({ description: 'Maximum number of tokens per minute.' })),
  low_balance: Nullable(Roubles('A mail is sent when the balance falls below this amount, in roubles.')),
};

const text = (maxLength: number, description: string) =>
  Type.Optional(Nullable(Type.String({ minLength: 1, maxLength, format: 'plain-text', description })));
const amount = (description: string) => Type.Number({ minimum: 0, maximum: maxAmount, description });
const list = (maxItems: number, maxLength: number, description: string) =>
  Type.Optional(Nullable(Type.Array(Type.String({ maxLength }), { minItems: 1, maxItems, description })));

/** The settings that operators set. Null clears one. */
export const settingInputs = {
  name: text(maxNameLength, 'Who it belongs to.'),
  email: text(254, 'An address of its owner, for mails about a low balance.'),
  note: text(maxNoteLength, 'For operators.'),
  budget: Type.Optional(
    Nullable(
      Type.Object(
        { amount: amount('How much the account may spend in each period, in roubles.'), period: Period },
        { description: 'What was spent in the current period counts.' },
      ),
    ),
  ),
  models: list(maxModels, 200, 'Ids of the models that it may use.'),
  addresses: list(maxAddresses, 60, 'Addresses, and networks such as `10.0.0.0/8`.'),
  expires_at: Type.Optional(
    Nullable(
      Type.String({
        maxLength: 40,
        description:
          'When its key stops working: a date, which is its beginning in UTC, or a time with an offset.',
      }),
    ),
  ),
  tokens_per_minute: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: maxTokensPerMinute }))),
  low_balance: Type.Optional(
    Nullable(amount('A mail is sent when the balance falls below this amount, in roubles.')),
  ),
};

/** An account with a name and an address, and without limits. */
export const settingExamples = {
  name: 'Anna Petrova',
  email: 'anna@example.com',
  note: null,
  budget: null,
  owner_budget: null,
  models: null,
  owner_models: null,
  addresses: null,
  expires_at: null,
  tokens_per_minute: null,
  low_balance: null,
};
