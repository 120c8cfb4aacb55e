import { callRedis, type RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import type { WebhookDelivery } from '../../../shared/work/webhook-delivery.ts';
import type { DeliveryLane } from './delivery-lanes.ts';

/** How long an attempt waits for a response. */
const fullLimitMs = 15_000;
/** The same after one timeout, and after more than one. */
const shortLimitsMs = [5_000, 2_000] as const;
/**
 * A receiver that times out again and again still gets the full limit once in this time. Otherwise one that takes a few
 * seconds to respond would never be found to be alive again.
 */
const fullTrialIntervalMs = 10 * 60_000;

const promptRecordSeconds = 7 * 24 * 60 * 60;
const hangingRecordSeconds = 60 * 60;

const promptRecord = 'prompt';

/** What is known about a receiver before an attempt. */
export interface ReceiverStanding {
  readonly lane: DeliveryLane;
  /** How long the attempt may take. */
  readonly limitMs: number;
  /** Number of timeouts since the receiver last responded. */
  readonly timeouts: number;
  /** When an attempt with the full limit last timed out, in ms; 0 if that is not known. */
  readonly fullTrialAtMs: number;
  /** Whether any receiver of the account timed out recently. */
  readonly hasHangingReceiver: boolean;
}

/**
 * How an attempt ended: soon, whatever the result; with a late response; late and without a response; or ended by us
 * before its time limit.
 */
export type ReceiverOutcome = 'prompt' | 'late' | 'timeout' | 'ended';

/**
 * @param record what the last attempt left, or null
 * @param hasHangingReceiver a new receiver of such an account counts as hanging too. Otherwise an account could have a
 * new host name for each webhook.
 */
export function readStanding(
  record: string | null,
  hasHangingReceiver: boolean,
  nowMs: number,
): ReceiverStanding {
  const base = { timeouts: 0, fullTrialAtMs: 0, hasHangingReceiver };
  if (record === promptRecord) return { ...base, lane: 'prompt', limitMs: fullLimitMs };
  if (record === null) {
    return hasHangingReceiver
      ? { ...base, lane: 'hanging', limitMs: shortLimitsMs[0] }
      : { ...base, lane: 'unknown', limitMs: fullLimitMs };
  }
  const [timeouts, fullTrialAtMs] = record.split(':').map(Number) as [number, number];
  const isFullTrialDue = nowMs - fullTrialAtMs > fullTrialIntervalMs;
  const shortLimitMs = shortLimitsMs[Math.min(timeouts, shortLimitsMs.length) - 1]!;
  return {
    lane: 'hanging',
    limitMs: isFullTrialDue ? fullLimitMs : shortLimitMs,
    timeouts,
    fullTrialAtMs,
    hasHangingReceiver,
  };
}

/** Returns what an attempt without a response leaves. */
export function writeTimeout(
  standing: ReceiverStanding,
  outcome: 'timeout' | 'ended',
  nowMs: number,
): string {
  const wasFullTrial = outcome === 'timeout' && standing.limitMs === fullLimitMs;
  const fullTrialAtMs = wasFullTrial ? nowMs : standing.fullTrialAtMs;
  return `${standing.timeouts + 1}:${fullTrialAtMs}`;
}

/**
 * How the receivers of each account responded last, for all workers. A receiver is an origin, as one server usually
 * serves all of its paths.
 */
export class ReceiverRecords {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  async read({ accountId, url }: WebhookDelivery): Promise<ReceiverStanding> {
    const keys = [keyOf(accountId, url), redisKeys.hangingWebhooks(accountId)];
    const [record, hanging] = await callRedis(() => this.#redis.mget(...keys));
    return readStanding(record ?? null, (hanging ?? null) !== null, Date.now());
  }

  async write(
    { accountId, url }: WebhookDelivery,
    standing: ReceiverStanding,
    outcome: ReceiverOutcome,
  ): Promise<void> {
    const receiver = keyOf(accountId, url);
    const hanging = redisKeys.hangingWebhooks(accountId);
    const redis = this.#redis;
    await callRedis(async () => {
      switch (outcome) {
        case 'prompt':
          await redis.set(receiver, promptRecord, 'EX', promptRecordSeconds);
          break;
        case 'late':
          await redis.del(receiver);
          break;
        case 'timeout':
        case 'ended':
          await Promise.all([
            redis.set(receiver, writeTimeout(standing, outcome, Date.now()), 'EX', hangingRecordSeconds),
            redis.set(hanging, '1', 'EX', hangingRecordSeconds),
          ]);
          return;
        default:
          outcome satisfies never;
      }
      if (standing.lane === 'hanging') await redis.del(hanging);
    });
  }
}

const keyOf = (accountId: string, url: string): string =>
  redisKeys.webhookReceiver(accountId, new URL(url).origin);
