import { healKey } from '../../shared/accounts/heal-key.ts';
import { createClaim, type Claim } from '../../shared/billing/claim.ts';
import { AppError, invalidField } from '../../shared/contract/errors.ts';
import { callRedis } from '../../shared/redis/redis-client.ts';
import {
  runAdmission,
  type Admission,
  type AdmissionAnswer,
  type AdmissionRequest,
  type RateLimit,
} from '../../shared/billing/admit-script.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { formatRub } from '../../shared/pricing/money.ts';
import type { AdmittedRequest } from '../../shared/queue/job-kinds.ts';
import type { Services } from '../services.ts';
import { holderOf } from './authenticate.ts';
import type { ApiContext } from './request-context.ts';

/** How long a request may wait before its work starts. */
const queueDeadlineMs = 10 * 60_000;

/** The most that a request can use, in the terms of its price. */
export interface Estimate {
  readonly model: CatalogModel;
  readonly promptTokens: number;
  readonly fixedNano: bigint;
  readonly nanoPerUnit: bigint;
  readonly wantedUnits: number;
  readonly leastUnits: number;
  readonly sharePermille: number;
  readonly user: string | null;
}

export interface Admitted extends Admission {
  readonly outcome: 'ok';
  readonly requestId: string;
  readonly request: AdmittedRequest;
}

/** The request was sent before under the same Idempotency-Key: that one's answer is to be given. */
export interface Attached {
  readonly outcome: 'attached';
  readonly requestId: string;
  readonly accountId: string;
}

/**
 * Admits a request: its limits and its money, in one trip to Redis. Sets the rate limit's headers either way; an answer
 * that is given again carries the id of the request that it was made for.
 * @throws AppError for whatever the account may not
 */
export async function admit(
  services: Services,
  context: ApiContext,
  estimate: Estimate,
): Promise<Admitted | Attached> {
  // Its caller may have gone while it was read and counted.
  if (context.res.destroyed) throw new AppError('job_cancelled');
  const { requestId } = context.state;
  const { accountId, keyHash } = holderOf(context);
  const { model, promptTokens, user } = estimate;
  const claim = readClaim(context);
  const answer = await askAdmission(services, {
    requestId,
    accountId,
    keyHash,
    slots: model.rpmCoefficient,
    fixedNano: estimate.fixedNano,
    nanoPerUnit: estimate.nanoPerUnit,
    wantedUnits: estimate.wantedUnits,
    leastUnits: estimate.leastUnits,
    sharePermille: estimate.sharePermille,
    freeAllowed: model.pricing.free_requests,
    claim,
  });
  if ('rateLimit' in answer) context.set(describeRateLimit(answer.rateLimit));
  if (answer.outcome === 'attached') {
    context.set({ 'x-request-id': answer.requestId, 'idempotent-replayed': 'true' });
    return { ...answer, accountId };
  }
  if (answer.outcome !== 'ok') throw await toRefusal(services, keyHash, answer);
  const admittedAtMs = Date.now();
  return {
    ...answer,
    requestId,
    request: {
      requestId,
      accountId,
      model: model.id,
      pricing: model.pricing,
      priceVersion: model.priceVersion,
      admittedAtMs,
      deadlineAtMs: admittedAtMs + queueDeadlineMs,
      userIp: context.ip,
      promptTokens,
      user,
      claimHash: claim?.keyHash ?? null,
    },
  };
}

/** Printable ASCII, as a header holds it. */
const idempotencyKey = /^[\x20-\x7e]{1,255}$/;

/** Null where the caller sent no Idempotency-Key; nothing is guessed from other headers. */
function readClaim(context: ApiContext): Claim | null {
  const key = context.req.headers['idempotency-key'];
  if (key === undefined) return null;
  const text = String(key).trim();
  if (!idempotencyKey.test(text)) {
    throw invalidField(['header', 'Idempotency-Key'], 'must have 1 to 255 printable ASCII characters');
  }
  return createClaim(text, context.path, context.state.body);
}

/**
 * An account that Redis does not hold is loaded from MongoDB, and a key that Redis does not take for the account's own is
 * looked up there; then it is asked once more.
 */
async function askAdmission(services: Services, request: AdmissionRequest): Promise<AdmissionAnswer> {
  const { redis, hotAccounts } = services;
  const { accountId } = request;
  const ask = (): Promise<AdmissionAnswer> => callRedis(() => runAdmission(redis, request));
  const answer = await ask();
  switch (answer.outcome) {
    case 'unknown':
      await hotAccounts.load(accountId);
      return await ask();
    case 'revoked':
      return (await healKey(services, request)) ? await ask() : answer;
    default:
      return answer;
  }
}

type Refusal = Exclude<AdmissionAnswer, { outcome: 'ok' | 'attached' }>;

async function toRefusal({ apiKeys }: Services, keyHash: string, answer: Refusal): Promise<AppError> {
  switch (answer.outcome) {
    case 'unknown':
    case 'revoked':
      await apiKeys.forget(keyHash);
      return new AppError('invalid_api_key');
    case 'banned':
      return new AppError('account_banned');
    case 'conflict':
      return new AppError('idempotency_conflict');
    case 'ledger_full':
      return new AppError('service_unavailable', { message: 'the ledger stream is at its bound' });
    case 'rate_limited': {
      const seconds = Math.min(59, Math.max(1, answer.retryAfterSeconds));
      return new AppError('rate_limit_exceeded', {
        message: `The limit of ${answer.rateLimit.limit} requests per minute is reached. Try again in ${seconds} s.`,
        headers: { 'retry-after': String(seconds) },
      });
    }
    case 'insufficient':
      return new AppError('insufficient_balance', {
        message:
          `This request may cost up to ${formatRub(answer.neededNano)} RUB; ` +
          `${formatRub(answer.spendableNano)} RUB of the balance can be spent. Refill it, or ask for less.`,
      });
    default:
      return answer satisfies never;
  }
}

function describeRateLimit({ limit, remaining, resetSeconds }: RateLimit): Record<string, string> {
  return {
    'x-ratelimit-limit-requests': String(limit),
    'x-ratelimit-remaining-requests': String(Math.max(0, remaining)),
    'x-ratelimit-reset-requests': formatReset(resetSeconds),
  };
}

/** As OpenAI writes it: `1s`, `59s`, `1m0s`. */
function formatReset(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`;
}
