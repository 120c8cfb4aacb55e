import { hashIdempotencyKey } from '../../shared/billing/claim.ts';
import { runPreAdmission, type PreAdmission } from '../../shared/billing/pre-admit-script.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { ModelType } from '../../shared/contract/models.ts';
import { computeWorstCase, noUsage } from '../../shared/pricing/cost.ts';
import type { Services } from '../services.ts';
import { askAccount, describeRateLimit, toAccountError } from './ask-account.ts';
import { holderOf } from './authenticate.ts';
import { readIdempotencyKey } from './idempotency-key.ts';
import type { ApiContext } from './request-context.ts';

/**
 * What is known of a request before its body is asked before a large body is read: reading, counting and keeping one
 * costs the process more than one trip to Redis. Takes one slot of the account's minute, which the admission counts as
 * taken.
 * @param types of the models that the operation is for
 * @throws AppError `invalid_api_key`, `account_banned`, `rate_limit_exceeded`; `insufficient_balance` for an account that
 *   can pay for none of these models
 */
export async function preAdmit(
  services: Services,
  context: ApiContext,
  types: readonly ModelType[],
): Promise<void> {
  const holder = holderOf(context);
  const key = readIdempotencyKey(context);
  const request = { ...holder, claimHash: key === null ? null : hashIdempotencyKey(key) };
  const answer = await askAccount(services, holder, () => runPreAdmission(services.redis, request));
  if ('rateLimit' in answer) context.set(describeRateLimit(answer.rateLimit));
  if (answer.outcome !== 'ok') throw await toAccountError(services, holder, answer);
  context.state.preAdmission = answer;
  if (!canSpend(answer) && !hasFreeModel(services, types)) throw new AppError('insufficient_balance');
}

/**
 * Refuses a large request that its account certainly cannot pay for, before its text is counted, which takes seconds of
 * the process. Whether a balance is enough only the admission knows.
 * @param costNano as far as it is known by now
 * @throws AppError `insufficient_balance`
 */
export function precheckBalance(context: ApiContext, { pricing }: CatalogModel, costNano = 1n): void {
  const { preAdmission } = context.state;
  if (preAdmission === undefined || isFree(pricing)) return;
  const freeRequests = pricing.free_requests ? preAdmission.freeRequests : 0;
  if (!canSpend({ ...preAdmission, freeRequests }, costNano)) throw new AppError('insufficient_balance');
}

/** An answer that is kept was paid for by the request that made it. */
function canSpend(
  { spendableNano, freeRequests, isReplay }: Omit<PreAdmission, 'rateLimit'>,
  costNano = 1n,
): boolean {
  return spendableNano >= costNano || freeRequests > 0 || isReplay;
}

/** Accounts without money may use models that cost nobody anything. */
function hasFreeModel({ catalog }: Services, types: readonly ModelType[]): boolean {
  return catalog.current.models.some(
    (model) => types.includes(model.type) && catalog.isActive(model) && isFree(model.pricing),
  );
}

function isFree(pricing: CatalogModel['pricing']): boolean {
  // Prices of characters and seconds are rounded to the nearest nano-rouble: so many of them do not round to nothing.
  const usage = { ...noUsage, promptTokens: 1, images: 1, characters: 1_000_000, durationMs: 1_000_000 };
  const worst = computeWorstCase(pricing, usage);
  return worst.fixedNano === 0n && worst.nanoPerCompletionToken === 0n;
}
