// decision 0033
import { hashIdempotencyKey } from '../../shared/money/idempotency-claim.ts';
import { runPreAdmission, type PreAdmission } from '../../shared/money/pre-admit-script.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { ModelType } from '../../shared/contract/models.ts';
import { countWaitingForTurns } from '../../shared/fairness/work-turns.ts';
import { computeWorstCase, noUsage } from '../../shared/catalog/cost.ts';
import type { ApiContext } from '../http/request/context.ts';
import { holderOf } from '../http/request/holder.ts';
import { confirmHolder } from '../http/request/session-holder.ts';
import { readIdempotencyKey } from '../http/request/idempotency-key.ts';
import type { Services } from '../services.ts';
import { budgetExceeded, describeRestrictions } from './restriction-errors.ts';
import { runForAccount, describeRateLimit, toAccountError } from './run-for-account.ts';
import { addressDigits } from '../http/callers/address-digits.ts';

/**
 * Checks the account before a large body is read, because reading, tokenizing and buffering the body costs more than a
 * round trip to Redis. Takes one request slot from the account's rate limit per minute. A model may require several
 * slots per request; admission then takes only the remaining ones.
 * @param types model types of the operation
 * @throws AppError `invalid_api_key`, `account_banned`, `key_expired`, `address_not_allowed`, `rate_limit_exceeded`;
 * `insufficient_balance` or `budget_exceeded` if the account cannot pay for any of these models
 */
export async function preAdmitBody(
  services: Services,
  context: ApiContext,
  types: readonly ModelType[],
): Promise<void> {
  const preAdmission = await requestPreAdmission(services, context, 1);
  context.state.preAdmission = preAdmission;
  checkSpendable(services, preAdmission, types);
}

/**
 * Makes the same checks before a small body is read, for a caller that waits for `100 Continue`. Takes no slot, because
 * the number that the model requires is not known yet. Admission takes either all of them or none, so that an account
 * at its limit can accumulate enough.
 */
export async function checkBeforeBody(
  services: Services,
  context: ApiContext,
  types: readonly ModelType[],
): Promise<void> {
  checkSpendable(services, await requestPreAdmission(services, context, 0), types);
}

function checkSpendable(services: Services, result: PreAdmission, types: readonly ModelType[]): void {
  if (!canSpend(result) && !hasFreeModel(services, types)) throw createFundsError(result);
}

/**
 * Checks the account before expensive work for a request, unless it was checked already. The model is known by now, so
 * this takes all slots that the model requires. If they were taken one at a time, an account at its limit could never
 * accumulate enough.
 * @throws AppError `invalid_api_key`, `account_banned`, `key_expired`, `address_not_allowed`, `rate_limit_exceeded`;
 * `insufficient_balance` or `budget_exceeded` if the account cannot spend anything
 */
export async function preAdmit(services: Services, context: ApiContext, model: CatalogModel): Promise<void> {
  if (context.state.preAdmission !== undefined) return;
  context.state.preAdmission = await requestPreAdmission(services, context, model.rpmCoefficient);
  precheckBalance(context, model);
}

/**
 * Takes one request slot from the account's rate limit per minute, for a call that sends a stored response again.
 * @throws AppError `invalid_api_key`, `account_banned`, `key_expired`, `address_not_allowed`, `rate_limit_exceeded`
 */
export async function takeRateSlot(services: Services, context: ApiContext): Promise<void> {
  await requestPreAdmission(services, context, 1);
}

/**
 * If an account has more requests than this waiting to be tokenized, its further requests are checked by `preAdmit`
 * first.
 */
const maxUncheckedWaiting = 8;

/**
 * Runs `preAdmit` before tokenizing, which takes milliseconds, if the request is likely to be rejected: its account had
 * a request rejected in the last few seconds, or has many requests waiting to be tokenized. All other requests are
 * checked only at admission.
 * @throws AppError like `preAdmit`
 */
export async function preAdmitIfLikelyRejected(
  services: Services,
  context: ApiContext,
  model: CatalogModel,
): Promise<void> {
  const { accountId } = holderOf(context);
  if (services.recentRejections.has(accountId) || countWaitingForTurns(accountId) > maxUncheckedWaiting)
    await preAdmit(services, context, model);
}

async function requestPreAdmission(
  services: Services,
  context: ApiContext,
  slots: number,
): Promise<PreAdmission> {
  const holder = holderOf(context);
  await confirmHolder(services, holder);
  const key = readIdempotencyKey(context);
  const { accountId, keyHash } = holder;
  const request = {
    accountId,
    keyHash,
    slots,
    claimHash: key === null ? null : hashIdempotencyKey(key),
    // Lines of batches count no tokens, and neither does a stored response.
    checksTokens: context.state.operation?.modelTypes !== undefined,
    address: addressDigits(context.ip),
  };
  const result = await runForAccount(services, holder, () => runPreAdmission(services.redis, request));
  if ('rateLimit' in result) context.set(describeRateLimit(result.rateLimit));
  if (result.outcome !== 'ok') throw await toAccountError(services, holder, result, context.ip);
  context.set(describeRestrictions(result));
  if (result.spendableNano > 0n || result.freeRequests > 0) services.funded.note(holder);
  return result;
}

/**
 * Rejects a pre-admitted request before its text is tokenized if its account certainly cannot pay for it. Only
 * admission determines whether the balance is sufficient.
 * @param costNano minimum cost known so far
 * @throws AppError `insufficient_balance`, `budget_exceeded`
 */
export function precheckBalance(context: ApiContext, { pricing }: CatalogModel, costNano = 1n): void {
  const { preAdmission } = context.state;
  if (preAdmission === undefined || isFree(pricing)) return;
  const freeRequests = pricing.free_requests ? preAdmission.freeRequests : 0;
  if (!canSpend({ ...preAdmission, freeRequests }, costNano)) throw createFundsError(preAdmission, costNano);
}

/** The error of an account that cannot pay: its balance is too low, or else its budget is used up. */
function createFundsError({ spendableNano, budget }: PreAdmission, costNano = 1n): AppError {
  return budget === null || spendableNano < costNano
    ? new AppError('insufficient_balance')
    : budgetExceeded(budget, costNano === 1n ? null : costNano);
}

/** Whether the account can pay. A replayed response was charged to its original request. */
function canSpend(
  {
    spendableNano,
    budget,
    freeRequests,
    isReplay,
  }: Omit<PreAdmission, 'rateLimit' | 'slotsTaken' | 'tokens'>,
  costNano = 1n,
): boolean {
  const isInBudget = budget === null || budget.leftNano >= costNano;
  return (spendableNano >= costNano && isInBudget) || freeRequests > 0 || isReplay;
}

/** Whether there is a free model, which accounts without money may use. */
function hasFreeModel({ catalog }: Services, types: readonly ModelType[]): boolean {
  return catalog.current.models.some(
    (model) => types.includes(model.type) && catalog.isActive(model) && isFree(model.pricing),
  );
}

function isFree(pricing: CatalogModel['pricing']): boolean {
  // Prices of characters and seconds are rounded to the nearest nano-rouble, so use amounts that do not round to zero.
  const usage = { ...noUsage, promptTokens: 1, images: 1, characters: 1_000_000, durationMs: 1_000_000 };
  const worst = computeWorstCase(pricing, usage);
  return worst.fixedNano === 0n && worst.nanoPerCompletionToken === 0n;
}
