import Type, { type Static } from 'typebox';
import { Nullable, StringEnum, Time } from './fields.ts';
import { requestOutcomes } from './request-terms.ts';
import { RequestQuantities, RequestRates } from './request-rates.ts';

export const AdminAttempt = Type.Object(
  {
    upstream: Type.String({ description: 'The upstream’s name in the catalog.' }),
    status: Nullable(
      Type.Integer({
        description: 'HTTP status of the vendor; null if it sent none, for example after a timeout.',
      }),
    ),
    reason: Nullable(
      Type.String({
        description: 'Why it failed, in the vendor’s words without secrets; null for a success.',
      }),
    ),
    started_ms: Nullable(
      Type.Integer({
        description: 'From the admission of the request to this call; null for rows of earlier releases.',
      }),
    ),
    duration_ms: Type.Integer({ description: 'From the call to its end.' }),
  },
  { title: 'AdminAttempt' },
);
export type AdminAttempt = Static<typeof AdminAttempt>;

const count = (description: string) => Nullable(Type.Integer({ description }));

/** A request as operators see it. Its customer sees neither upstream nor attempts nor what it cost the operator. */
export const AdminRequest = Type.Object(
  {
    id: Type.String({ description: 'The request’s id, which the customer got as `x-request-id`.' }),
    account: Type.String({ description: 'The id of the account.' }),
    account_name: Nullable(
      Type.String({ description: 'Its name, or else its email address; null if it has neither.' }),
    ),
    created_at: Time('When the request was admitted.'),
    is_expired: Type.Boolean({
      description:
        'Whether the row of the request log has been deleted. The ledger still says what the request cost; everything ' +
        'else is null.',
    }),
    model: Nullable(
      Type.String({ description: 'Null for a rejected request that names no model of the catalog.' }),
    ),
    outcome: Nullable(StringEnum(requestOutcomes)),
    status: count('HTTP status that the customer got.'),
    code: Nullable(Type.String({ description: '`error.code` that the customer got; null for a success.' })),
    details: Nullable(Type.String({ description: 'What the customer was told.' })),
    upstream: Nullable(
      Type.String({
        description: 'The upstream that was called last. Null if none was called, and for lines of batches.',
      }),
    ),
    attempts: Type.Array(AdminAttempt, {
      description:
        'The calls to vendors, in their order: the first nine and the last. Empty for lines of batches.',
    }),
    prompt_tokens: count('All prompt tokens.'),
    cache_read_tokens: count('The part of them that the vendor read from its cache.'),
    completion_tokens: count('All completion tokens.'),
    reasoning_tokens: count('The part of them that was reasoning; null if the vendor does not report it.'),
    images: count('Images that were made.'),
    lines: count('For a batch: how many lines called the model. Otherwise null.'),
    estimated: Nullable(
      Type.Boolean({
        description: 'Whether the usage is our own estimate, because the vendor reported none.',
      }),
    ),
    total_time: Nullable(Type.Number({ description: 'Seconds from admission to settlement.' })),
    queued_ms: count(
      'From the admission to the first call; null if there was none, and for rows of earlier releases.',
    ),
    first_token_seconds: Nullable(
      Type.Number({
        description: 'Seconds until the first output of a streamed chat; null for everything else.',
      }),
    ),
    cost: Type.Number({ description: 'What the customer paid, in roubles.' }),
    shortfall: Type.Number({
      description:
        'What it would have cost beyond the balance and the reservation, in roubles. Never charged.',
    }),
    vendor_cost: Nullable(
      Type.Number({
        description:
          'What the vendors charge for it, in roubles, according to `cost` of the routes in the catalog; null if that ' +
          'does not say.',
      }),
    ),
    margin: Nullable(Type.Number({ description: '`cost` minus `vendor_cost`, in roubles.' })),
    rates: Nullable(RequestRates),
    quantities: Nullable(RequestQuantities),
    vendor_rates: Nullable({
      ...RequestRates,
      description:
        'The prices that the vendor charges by, in roubles: those of the route in the catalog, if they give exactly ' +
        '`vendor_cost`. Otherwise null: the catalog has changed, several calls cost something, or a line of a batch.',
    }),
    vendor_quantities: Nullable({ ...RequestQuantities, description: 'Null if `vendor_rates` is.' }),
    free: Type.Boolean({ description: 'Whether it was paid for with a free request.' }),
    user: Nullable(Type.String({ description: 'The end user named by the customer.' })),
    user_ip: Nullable(Type.String({ description: 'The address of the customer.' })),
    idempotency_key: Nullable(
      Type.Boolean({
        description:
          'Whether it was sent with an `Idempotency-Key`; null for batches, for requests that were rejected before a model was ' +
          'called, and for rows of earlier releases.',
      }),
    ),
    replays: count(
      'How often it was sent again with its key and got the same response, without a charge; such calls have no row and ' +
        'return the id of this one. Null in lists, without a key, for a failure, which is not replayed, and once the key is ' +
        'forgotten: a day after the end.',
    ),
    price_version: Nullable(Type.String({ description: 'The version of the model’s prices.' })),
  },
  { title: 'AdminRequest' },
);
export type AdminRequest = Static<typeof AdminRequest>;
/** Without what is read elsewhere. */
export type NamelessRequest = Omit<AdminRequest, 'account_name'>;

export const AdminSpend = Type.Object(
  {
    account: Type.Optional(Type.String({ description: 'Only if `by` has it, as for the next four.' })),
    name: Type.Optional(
      Nullable(Type.String({ description: 'The name of the account, or else its email address.' })),
    ),
    upstream: Type.Optional(Type.String({ description: 'The upstream that was called last.' })),
    model: Type.Optional(Type.String()),
    day: Type.Optional(Type.String({ description: 'YYYY-MM-DD, in UTC, of the admission.' })),
    requests: Type.Integer({ description: 'Lines of batches count one by one.' }),
    failures: Type.Integer(),
    free_requests: Type.Integer(),
    prompt_tokens: Type.Integer(),
    cached_tokens: Type.Integer({
      description: 'The part of the prompt tokens that vendors read from their caches.',
    }),
    completion_tokens: Type.Integer(),
    cost: Type.Number({ description: 'What customers paid, in roubles.' }),
    vendor_cost: Nullable(
      Type.Number({
        description:
          'What the vendors charge, in roubles, as far as it is known; null if it is known of no request.',
      }),
    ),
    margin: Nullable(
      Type.Number({
        description:
          'What customers paid for the requests whose vendor cost is known, minus that, in roubles; null if there are none.',
      }),
    ),
    costed_requests: Type.Integer({ description: 'The requests whose vendor cost is known.' }),
  },
  { title: 'AdminSpend' },
);
export type AdminSpend = Static<typeof AdminSpend>;

const Sum = (what: string) => Type.String({ description: `${what}, in roubles: exact, as a decimal.` });

/** Sums of money of many rows may have more digits than a JSON number keeps. */
export const AdminSpendTotal = Type.Object(
  {
    rows: Type.Integer({ description: 'How many rows there are, also those that `limit` leaves out.' }),
    ...Type.Pick(AdminSpend, [
      'requests',
      'failures',
      'free_requests',
      'prompt_tokens',
      'cached_tokens',
      'completion_tokens',
      'costed_requests',
    ]).properties,
    cost: Sum('What customers paid'),
    vendor_cost: Nullable(Sum('What the vendors charge, as far as it is known')),
    margin: Nullable(Sum('What is left of what customers paid for the requests whose vendor cost is known')),
  },
  { title: 'AdminSpendTotal', description: 'What all rows add up to; only with `limit`.' },
);
export type AdminSpendTotal = Static<typeof AdminSpendTotal>;

/** What rows of spending can be ordered by. */
export const spendOrders = [
  'cost',
  'requests',
  'failures',
  'tokens',
  'vendor_cost',
  'margin',
  'margin_share',
  'day',
] as const;
export type SpendOrder = (typeof spendOrders)[number];
