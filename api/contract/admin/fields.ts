import Type, { type TSchema } from 'typebox';
import { maxReasonInQuery, maxReasonLength } from '../../../shared/contract/admin-terms.ts';
import { Nullable } from '../../../shared/contract/fields.ts';

/** The query of a list. Lists with filters add theirs. */
export const pageQuery = {
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Maximum number of items.' }),
  after: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1_000, description: 'The `last_id` of the previous page.' }),
  ),
};

/** An id in a query. Keys and codes, which are sometimes sent in its place, must be in no address. */
export const IdInQuery = (description: string, maxLength = 100) =>
  Type.String({ minLength: 1, maxLength, format: 'without-secret', description });

/** One page of a list. */
export const PageOfAdmin = <T extends TSchema>(item: T) =>
  Type.Object({
    data: Type.Array(item, { description: 'Newest first, unless the list says otherwise.' }),
    has_more: Type.Boolean({ description: 'Whether there is another page.' }),
    last_id: Nullable(Type.String({ description: 'Where the next page begins: send it as `after`.' })),
  });

export const Roubles = (description: string) => Type.Number({ description });
export const Moment = (description: string) => Type.String({ format: 'date-time', description });
export const OptionalMoment = (description: string) => Nullable(Moment(description));
export const Count = (description?: string) =>
  Type.Integer({ minimum: 0, ...(description === undefined ? {} : { description }) });

/** Beside the id of an account. */
export const AccountName = Nullable(
  Type.String({
    description:
      'The name of the account, or else its email address; null if it has neither, or MongoDB does not respond.',
  }),
);

/** The last refusal of a key. */
export const LastRefusal = Nullable(
  Type.Object(
    {
      at: Moment('When the vendor refused it.'),
      reason: Type.String({ description: 'With which status, and code of the vendor.' }),
    },
    {
      description:
        'The last refusal of a key by the vendor, such as for want of credit; null once a call with it has succeeded, and after an hour.',
    },
  ),
);

export const Reason = Type.String({
  minLength: 1,
  maxLength: maxReasonLength,
  format: 'plain-text',
  description: 'Why; for operators. It is also the reason in the audit log. Keys and codes in it are masked.',
});

/** The query of a change that is recorded, unless its body has a reason. Beside `dry_run`, because not all have a body. */
export const reasonQuery = {
  reason: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: maxReasonInQuery,
      format: 'reason',
      description:
        'Why, for operators: it is in the audit log. In a query because not all changes have a body; it must not contain a key ' +
        'or a code.',
    }),
  ),
};
export const ReasonQuery = Type.Object(reasonQuery);

/** An amount that the operator gives. */
export const maxAmount = 9_000_000;
