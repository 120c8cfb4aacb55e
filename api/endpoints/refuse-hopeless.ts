import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { computeWorstCase, noUsage } from '../../shared/pricing/cost.ts';
import { holderOf } from '../middleware/authenticate.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import type { Services } from '../services.ts';

/** Counting less is done before Redis has answered. */
const quickCharacters = 64 * 1024;

/**
 * Counting a large body takes up to seconds of this process. An account that may send nothing, or has nothing to pay with,
 * is told so before; whether it can pay for this very request only the admission knows.
 * @throws AppError `account_banned`, `insufficient_balance`
 */
export async function refuseHopeless(
  { hotAccounts }: Services,
  context: ApiContext,
  { pricing }: CatalogModel,
  texts: Iterable<string>,
): Promise<void> {
  if (!isLarge(texts)) return;
  const account = await hotAccounts.get(holderOf(context).accountId);
  if (account.banned) throw new AppError('account_banned');
  const worst = computeWorstCase(pricing, {
    ...noUsage,
    promptTokens: 1,
    characters: 1,
    images: 1,
    durationMs: 1,
  });
  const isFree = pricing.free_requests && account.freeRequests > 0;
  if (!isFree && worst.fixedNano > 0n && account.balanceNano <= account.reservedNano)
    throw new AppError('insufficient_balance');
}

function isLarge(texts: Iterable<string>): boolean {
  let characters = 0;
  for (const text of texts) {
    characters += text.length;
    if (characters > quickCharacters) return true;
  }
  return false;
}
