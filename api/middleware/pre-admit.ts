import { hashIdempotencyKey } from '../../shared/billing/claim.ts';
import { runPreAdmission, type PreAdmission } from '../../shared/billing/pre-admit-script.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { ModelType } from '../../shared/contract/models.ts';
import { countWaitingForTurns } from '../../shared/fairness/work-turns.ts';
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
export async function preAdmitBody(
  services: Services,
  context: ApiContext,
  types: readonly ModelType[],
): Promise<void> {
  const preAdmission = await askPreAdmission(services, context, 1);
  context.state.preAdmission = preAdmission;
  checkSpendable(services, preAdmission, types);
}

/**
 * Asks the same before a small body is read, for a caller who waits to be told to send it. Takes no slot: its admission
 * takes all that the model asks for, or none, so that an account at its limit can gather them.
 */
export async function checkBeforeBody(
  services: Services,
  context: ApiContext,
  types: readonly ModelType[],
): Promise<void> {
  checkSpendable(services, await askPreAdmission(services, context, 0), types);
}

function checkSpendable(services: Services, answer: PreAdmission, types: readonly ModelType[]): void {
  if (!canSpend(answer) && !hasFreeModel(services, types)) throw new AppError('insufficient_balance');
}

/**
 * Asks about the account before costly work for one of its requests, unless that was asked before. The model is known by
 * now, so all of its slots are taken: one at a time would let an account at its limit never gather enough of them.
 * @throws AppError `invalid_api_key`, `account_banned`, `rate_limit_exceeded`; `insufficient_balance` for an account that
 *   can spend nothing
 */
export async function preAdmit(services: Services, context: ApiContext, model: CatalogModel): Promise<void> {
  if (context.state.preAdmission !== undefined) return;
  context.state.preAdmission = await askPreAdmission(services, context, model.rpmCoefficient);
  precheckBalance(context, model);
}

/** Of one account, so many requests may wait to be counted before those that come are asked about first. */
const maxWaitingUnasked = 8;

/**
 * Has an account that is likely to be refused asked about before its request is counted, which takes milliseconds: one
 * that was refused a moment ago, or has a crowd of requests waiting to be counted. All others are asked about once, by
 * their admission.
 * @throws AppError as preAdmit does
 */
export async function preAdmitDoubtful(
  services: Services,
  context: ApiContext,
  model: CatalogModel,
): Promise<void> {
  const { accountId } = holderOf(context);
  if (services.refusals.has(accountId) || countWaitingForTurns(accountId) > maxWaitingUnasked)
    await preAdmit(services, context, model);
}

async function askPreAdmission(
  services: Services,
  context: ApiContext,
  slots: number,
): Promise<PreAdmission> {
  const holder = holderOf(context);
  const key = readIdempotencyKey(context);
  const request = { ...holder, slots, claimHash: key === null ? null : hashIdempotencyKey(key) };
  const answer = await askAccount(services, holder, () => runPreAdmission(services.redis, request));
  if ('rateLimit' in answer) context.set(describeRateLimit(answer.rateLimit));
  if (answer.outcome !== 'ok') throw await toAccountError(services, holder, answer);
  return answer;
}

/**
 * Refuses a pre-admitted request that its account certainly cannot pay for, before its text is counted. Whether a balance
 * is enough only the admission knows.
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
  { spendableNano, freeRequests, isReplay }: Omit<PreAdmission, 'rateLimit' | 'slotsTaken'>,
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
