import Type from 'typebox';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { refillSources } from '../../../shared/ledger/refill-rows.ts';
import { AdminAccountPath } from './accounts.ts';
import { DryRunQuery, dryRuns, entryKinds } from './dry-run.ts';
import { AccountName, Count, OptionalMoment, PageOfAdmin, pageQuery, Roubles } from './fields.ts';

const ExactRoubles = (what: string) =>
  Type.String({ description: `${what}, in roubles: exact, as a decimal.` });

export const verifyAccountLedger = defineOperation({
  operationId: 'verifyAccountLedger',
  tag: 'Admin',
  summary: 'Verify the ledger of an account',
  description:
    'Adds up every entry of the ledger, also those that are not in MongoDB yet, and compares the sums with the balance and its ' +
    'reservations in MongoDB and Redis, and with the request log. Work in progress causes no differences. Changes nothing. If there ' +
    'is too much to read, nothing is checked, and `why_not` says why: run `admin ledger verify --account`.',
  method: 'get',
  path: '/admin/accounts/{account_id}/ledger',
  auth: 'admin',
  adminScope: 'read',
  pathParameters: AdminAccountPath,
  response: Type.Object(
    {
      entries: Count('Entries of the ledger; not counted beyond 5 001.'),
      checked: Nullable(
        Type.Object({
          added: ExactRoubles('By codes, the sign-up and operators'),
          taken_back: ExactRoubles('Taken back by operators'),
          spent: ExactRoubles('Charged for requests'),
          balance: ExactRoubles('What is left'),
          difference_count: Count(),
          differences: Type.Array(
            Type.Object({
              check: Type.String({ description: 'What does not hold.' }),
              request_id: Nullable(Type.String()),
              expected: Type.String(),
              found: Type.String(),
            }),
            { description: 'The first 100.' },
          ),
        }),
      ),
      why_not: Nullable(
        StringEnum(['too_many_entries', 'ledger_behind', 'busy'], {
          description:
            'Why nothing was checked; null if it was. `too_many_entries`: the account has more than 5 000. `ledger_behind`: more than ' +
            '5 000 entries of accounts like it are not in MongoDB yet; ask again when workers have caught up. `busy`: too many ' +
            'requests are in progress, or the ledger changed each time it was read; ask again.',
        }),
      ),
    },
    { title: 'AccountLedger' },
  ),
  errors: ['not_found'],
  example: {
    path: { account_id: '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a' },
    response: {
      entries: 1_204,
      checked: {
        added: '150',
        taken_back: '0',
        spent: '49.36120748',
        balance: '100.63879252',
        difference_count: 0,
        differences: [],
      },
      why_not: null,
    },
  },
});

const DeadEntry = Type.Object(
  {
    entry: Type.String({ description: 'Which entry it is.' }),
    stream_id: Type.String({ description: 'Its id in the stream from which it could not be read.' }),
    written_at: OptionalMoment('When it was written: when the request or the refill ended.'),
    dead_since: OptionalMoment('When a worker found that it could not be read.'),
    account: Nullable(Type.String({ description: 'Null if it names none.' })),
    account_name: AccountName,
    request_id: Nullable(Type.String({ description: 'Of a charge, if it is readable.' })),
    model: Nullable(Type.String({ description: 'Of a charge, if it is readable.' })),
    kind: Nullable(
      StringEnum(entryKinds, { description: '`charge` for a request, or `refill`; null if it is neither.' }),
    ),
    source: Nullable(
      StringEnum(refillSources, {
        description: 'Where a refill came from; null for others, or if unreadable.',
      }),
    ),
    counted: Type.Boolean({
      description:
        'Whether its amounts are in the balance, because only its details could not be read. Otherwise it is in no balance.',
    }),
    is_credited_again: Type.Boolean({
      description:
        'Whether it is the refill of a redeemed code or a sign-up grant that is not counted: the gateway credits it again by ' +
        'itself, within about a week, or has done so. Do not credit the account for it.',
    }),
    reason: Type.String({ description: 'What is wrong with it.' }),
    amount: Nullable(
      Roubles(
        'What it takes from the balance (a charge) or adds to it, in roubles; null if that is unreadable.',
      ),
    ),
    free_requests: Nullable(
      Type.Integer({ description: 'Free requests that it takes or adds; null if that is unreadable.' }),
    ),
    fields: Type.Array(Type.String(), {
      description:
        'The entry as it is in the stream: names and values, alternating. Keys and codes are masked, and long values are cut, ' +
        'so that all have about 8 000 characters. The audit log keeps them after a discard.',
    }),
  },
  { title: 'DeadEntry' },
);

const deadEntry = {
  entry: '12:1795252509000-0',
  stream_id: '1795252504120-3',
  written_at: '2026-11-21T09:15:04.120Z',
  dead_since: '2026-11-21T09:15:09.000Z',
  account: '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a',
  account_name: 'Example Ltd',
  request_id: '019aa6b5-2f4e-7c1d-8a3b-5d6e7f8091a2',
  model: 'gpt-4o-mini',
  kind: 'charge',
  source: null,
  counted: false,
  is_credited_again: false,
  reason: 'ordinal is "many"',
  amount: 0.42,
  free_requests: 0,
  fields: Object.entries({
    kind: 'charge',
    account: '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a',
    id: '019aa6b5-2f4e-7c1d-8a3b-5d6e7f8091a2',
    cost: '420000000',
    shortfall: '0',
    free: '0',
    ordinal: 'many',
    event: '{"v":1,"model":"gpt-4o-mini"}',
  }).flat(),
};

export const listDeadEntries = defineOperation({
  operationId: 'listDeadEntries',
  tag: 'Admin',
  summary: 'List ledger entries that could not be read',
  description:
    'Entries that were damaged, or that a later release wrote, the latest first. Those that are not `counted` are in no balance: ' +
    'a customer was served and not charged, or has not got a refill. None can be put back. Those that have `is_credited_again` are ' +
    'of codes and sign-up grants, and the gateway credits these again by itself: do not credit the account. For each other entry ' +
    'that is not counted, correct the account with `POST /v1/admin/accounts/{account_id}/credits`, then discard the entry.',
  method: 'get',
  path: '/admin/ledger/dead',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object(pageQuery),
  response: Type.Interface(
    [PageOfAdmin(DeadEntry)],
    {
      sums: Nullable(
        Type.Object(
          {
            entries: Count('All that could not be read.'),
            uncounted: Count('Those of them that are in no balance and stay so.'),
            credited_again: Count(
              'Those that were not counted, and that the gateway credits again by itself, or has: in none of the other numbers.',
            ),
            unknown: Count('Those of `uncounted` whose amount is unreadable, too.'),
            charges: Roubles('The charges of `uncounted`: what customers were served for, in roubles.'),
            refills: Roubles('The refills of `uncounted`, in roubles.'),
          },
          { description: 'Of all entries; null on later pages, which do not add up again.' },
        ),
      ),
    },
    { title: 'DeadEntries' },
  ),
  errors: [],
  example: {
    query: { limit: 20 },
    response: {
      data: [deadEntry],
      has_more: false,
      last_id: deadEntry.entry,
      sums: { entries: 1, uncounted: 1, credited_again: 0, unknown: 0, charges: 0.42, refills: 0 },
    },
  },
});

export const discardDeadEntry = defineOperation({
  operationId: 'discardDeadEntry',
  tag: 'Admin',
  summary: 'Discard a ledger entry that could not be read',
  description:
    'Deletes the entry, whose last record is then in the audit log, with its `fields`. No balance changes: what it would have ' +
    'charged or added stays undone, unless it has `is_credited_again`. It cannot be undone. Of several calls, one discards it, and the others get `not_found`.',
  method: 'post',
  path: '/admin/ledger/dead/{entry}/discard',
  auth: 'admin',
  pathParameters: Type.Object({
    entry: Type.String({ minLength: 1, maxLength: 100, description: 'The `entry` of the list.' }),
  }),
  query: DryRunQuery,
  response: DeadEntry,
  additionalResponses: [dryRuns.discardDeadEntry],
  errors: ['not_found'],
  example: { path: { entry: deadEntry.entry }, response: deadEntry },
});
