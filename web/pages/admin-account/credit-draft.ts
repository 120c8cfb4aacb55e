import { countBounds, readCount, type Problem } from '../../admin/accounts/account-draft.ts';
import type { Schema } from '../../admin/api.ts';
import { readSignedAmount } from '../../lib/read-amount.ts';

/** A credit as it is typed. */
export interface CreditDraft {
  readonly amount: string;
  readonly free_requests: string;
  readonly note: string;
}

export const emptyCredit: CreditDraft = { amount: '', free_requests: '', note: '' };

const maxAmount = 9_000_000;
const { max } = countBounds.free_requests;
const freeBounds = { min: -max, max };

type CreditProblems = { readonly [Name in keyof CreditDraft]?: Problem };

const readOr0 = (text: string, read: (text: string) => number | null): number | null =>
  text.trim() === '' ? 0 : read(text);

const readAmount = ({ amount }: CreditDraft): number | null =>
  readOr0(amount, (text) => {
    const read = readSignedAmount(text);
    return read === null || Math.abs(Number(read)) > maxAmount ? null : Number(read);
  });

const readFree = ({ free_requests: count }: CreditDraft): number | null =>
  readOr0(count, (text) => readCount(text, freeBounds));

export function findCreditProblems(draft: CreditDraft): CreditProblems {
  const amount = readAmount(draft);
  const free = readFree(draft);
  if (amount === 0 && free === 0) return { amount: { text: 'nothingToCredit' } };
  return {
    ...(amount === null ? { amount: { text: 'wrongCredit' } } : {}),
    ...(free === null ? { free_requests: { text: 'wrongCount', ...freeBounds } } : {}),
  };
}

/** Returns the credit that a draft without problems means. */
export function writeCredit(draft: CreditDraft): Schema<'CreditRequest'> & { readonly amount: number } {
  const note = draft.note.trim();
  return {
    amount: readAmount(draft) ?? 0,
    free_requests: readFree(draft) ?? 0,
    ...(note === '' ? {} : { note }),
  };
}
