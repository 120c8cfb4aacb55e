import type { UsageEvent } from '../../shared/ledger/usage-event.ts';
import { ledgerStreamBound } from '../../shared/money/admit-script.ts';
import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { batchConstants } from '../../shared/work/batches/batch-constants.ts';
import type { BatchQueueName } from '../../shared/work/jobs/job-line.ts';
import type { BatchFault, RefusalCode } from '../../shared/work/batches/batch-record.ts';

/** Bytes of the input file whose lines a worker writes to the error file at a time, without running them. */
const refusedSliceBytes = 8_000_000;

const sliceNames = ['prefix', 'accountId', 'id', 'number', 'attempt'] as const;

const takeScript = new LuaScript(
  new URL('./take-slice.lua', import.meta.url),
  ['prefix', 'accountId', 'queue', 'model', 'workerId'],
  { constants: { ...batchConstants, ledgerStreamBound, refusedSliceBytes } },
);
const reserveScript = new LuaScript(
  new URL('./reserve-lines.lua', import.meta.url),
  [...sliceNames, 'amount', 'models'],
  {
    constants: batchConstants,
  },
);
const stopScript = new LuaScript(
  new URL('./stop-batch.lua', import.meta.url),
  ['prefix', 'accountId', 'id', 'why'],
  { constants: batchConstants },
);
const loseInputScript = new LuaScript(
  new URL('./lose-input.lua', import.meta.url),
  [...sliceNames, 'failure'],
  {
    constants: batchConstants,
  },
);
const settleScript = new LuaScript(
  new URL('./settle-lines.lua', import.meta.url),
  [
    ...sliceNames,
    'minutes',
    'step',
    'done',
    'isLast',
    'release',
    'reasoningTokens',
    'outputFile',
    'outputKey',
    'outputBytes',
    'errorFile',
    'errorKey',
    'errorBytes',
    'notRun',
  ],
  {
    itemNames: [
      'model',
      'exactCost',
      'event',
      'eventId',
      'succeeded',
      'failed',
      'promptTokens',
      'cacheReadTokens',
      'cacheWriteTokens',
      'completionTokens',
      'isCounted',
      'images',
      'characters',
      'billedMs',
      'vendorCost',
    ],
    constants: batchConstants,
  },
);
const returnScript = new LuaScript(
  new URL('./return-slice.lua', import.meta.url),
  [...sliceNames, 'pauseMs'],
  {
    constants: batchConstants,
  },
);
const renewScript = new LuaScript(new URL('./renew-slices.lua', import.meta.url), ['prefix'], {
  itemNames: ['accountId', 'id', 'number', 'attempt'],
  constants: batchConstants,
});

/** One attempt at a slice: lines of a batch that a worker has taken. */
export interface SliceAttempt {
  readonly accountId: string;
  readonly batchId: string;
  readonly number: number;
  readonly attempt: number;
}

export interface TakenSlice extends SliceAttempt {
  /** The lines that begin within these bytes of the input file. */
  readonly from: number;
  readonly to: number;
  /** How many workers have died with the slice since its last settlement. */
  readonly deaths: number;
  /** Number of its last settlement; 0 if there was none. */
  readonly step: number;
  /** Which of its lines are settled, as a worker wrote it. */
  readonly done: string;
  /** Null if the lines may be run. */
  readonly refusal: RefusalCode | null;
}

export interface TakenSlices {
  /** Batches of the account and model with lines that no worker has. */
  readonly left: number;
  /** Null if there was none to take. */
  readonly slice: TakenSlice | null;
}

type TakeReply =
  | [left: number]
  | [
      left: number,
      batchId: string,
      number: number,
      from: number,
      to: number,
      attempt: number,
      deaths: number,
      step: number,
      done: string,
      why: RefusalCode | '',
    ];

const prefixOf = (accountId: string): string => redisKeys.jobsOf(shardOf(accountId));

const valuesOf = ({ accountId, batchId, number, attempt }: SliceAttempt) => ({
  prefix: prefixOf(accountId),
  accountId,
  id: batchId,
  number,
  attempt,
});

/**
 * Takes the next slice of an account's oldest batch for a model.
 * @throws AppError `service_unavailable` while Redis is unavailable
 */
export async function takeSlice(
  redis: RedisClient,
  line: { readonly queue: BatchQueueName; readonly model: string },
  accountId: string,
  workerId: string,
): Promise<TakenSlices> {
  const values = { prefix: prefixOf(accountId), accountId, queue: line.queue, model: line.model, workerId };
  const reply = (await callRedis(() => takeScript.run(redis, values))) as TakeReply;
  if (reply.length === 1) return { left: reply[0], slice: null };
  const [left, batchId, number, from, to, attempt, deaths, step, done, why] = reply;
  const refusal = why === '' ? null : why;
  return { left, slice: { accountId, batchId, number, from, to, attempt, deaths, step, done, refusal } };
}

export type LineReservation =
  /** `gone`: another worker has the slice, or the batch has ended. `unknown`: the account is not in Redis. */
  | { readonly outcome: 'ok' | 'gone' | 'unknown' }
  | { readonly outcome: 'stopped'; readonly refusal: RefusalCode }
  /** The account may not use these models. */
  | { readonly outcome: 'refused'; readonly models: readonly string[] }
  | {
      readonly outcome: 'short';
      /** What can be reserved now. */
      readonly availableNano: bigint;
      /** What can be reserved once nothing else is. */
      readonly laterNano: bigint;
      /** Whether a budget of the account allows least of it. */
      readonly isBudget: boolean;
    };

/**
 * Reserves money for lines that are about to run: all of it or nothing.
 * @param models of the lines
 */
export async function reserveLines(
  redis: RedisClient,
  slice: SliceAttempt,
  amountNano: bigint,
  models: readonly string[] = [],
): Promise<LineReservation> {
  const values = { ...valuesOf(slice), amount: amountNano.toString(), models: JSON.stringify(models) };
  const reply = (await callRedis(() => reserveScript.run(redis, values))) as ReserveReply;
  switch (reply[0]) {
    case 'stopped':
      return { outcome: reply[0], refusal: reply[1] };
    case 'refused': {
      const [outcome, ...refused] = reply;
      return { outcome, models: refused };
    }
    case 'short': {
      const [spendable, balance, limit, remainder, left, unspent] = reply
        .slice(1)
        .map((text) => (text === '' ? null : BigInt(text)));
      const least = (one: bigint, other: bigint | null | undefined): bigint =>
        other === null || other === undefined || one < other ? one : other;
      const laterNano = least(balance!, remainder);
      return {
        outcome: reply[0],
        availableNano: least(least(spendable!, limit), left),
        laterNano: least(laterNano, unspent),
        isBudget: least(laterNano, unspent) < laterNano,
      };
    }
    default:
      return { outcome: reply[0] };
  }
}

type ReserveReply =
  | ['ok' | 'gone' | 'unknown']
  | ['stopped', RefusalCode]
  | ['refused', ...models: string[]]
  | [
      'short',
      spendable: string,
      balance: string,
      limit: string,
      remainder: string,
      left: string,
      unspent: string,
    ];

/** Stops running lines of a batch, for all of its workers. */
export async function stopBatch(
  redis: RedisClient,
  accountId: string,
  batchId: string,
  refusal: RefusalCode,
): Promise<void> {
  const values = { prefix: prefixOf(accountId), accountId, id: batchId, why: refusal };
  await callRedis(() => stopScript.run(redis, values));
}

/** Stops a batch whose input is lost. It fails when the lines that have been read have ended. */
export async function loseInput(redis: RedisClient, slice: SliceAttempt, fault: BatchFault): Promise<void> {
  const values = { ...valuesOf(slice), failure: JSON.stringify([fault]) };
  await callRedis(() => loseInputScript.run(redis, values));
}

/** Lines for one of the files with results. */
export interface ResultPart {
  /** The id of the file if the batch has none yet. */
  readonly fileId: string;
  /** Its length is 0 if there are no lines for the file, so that it was not stored. Null if there are no lines at all. */
  readonly object: { readonly key: string; readonly byteLength: number } | null;
}

/** Settled lines of one model. */
export interface ModelLines {
  readonly model: string;
  readonly costNano: bigint;
  /** Null if no model was called for any of them. */
  readonly event: UsageEvent | null;
  readonly succeeded: number;
  readonly failed: number;
}

export interface SettledLines {
  /** Numbers the settlements of the slice from 1. */
  readonly step: number;
  /** Which lines of the slice are settled with this. */
  readonly done: string;
  /** Whether all lines of the slice are. */
  readonly isLast: boolean;
  /** What was reserved for these lines. */
  readonly releaseNano: bigint;
  readonly reasoningTokens: number;
  /** How many of these lines were not run. */
  readonly notRun: number;
  readonly output: ResultPart;
  readonly errors: ResultPart;
  readonly models: readonly ModelLines[];
}

export interface LineSettlement {
  /**
   * `gone`: another worker has the slice, or the results were stored so long ago that they may be deleted. Nothing was
   * changed. `unknown`: the account is not in Redis.
   */
  readonly outcome: 'settled' | 'gone' | 'unknown';
  /** Whether these were the last lines of the batch. */
  readonly hasEnded: boolean;
  /** Why lines that have not begun must not be run. */
  readonly refusal: RefusalCode | null;
}

/** Settles lines whose results are stored in objects that `FileStore.beginSegments` began. Doing so again changes nothing. */
export async function settleLines(
  redis: RedisClient,
  slice: SliceAttempt,
  { step, done, isLast, releaseNano, reasoningTokens, notRun, output, errors, models }: SettledLines,
): Promise<LineSettlement> {
  const values = {
    ...valuesOf(slice),
    minutes: redisKeys.recentMinutes(slice.accountId),
    step,
    done,
    isLast: isLast ? 1 : 0,
    release: releaseNano.toString(),
    reasoningTokens,
    outputFile: output.fileId,
    outputKey: output.object?.key ?? '',
    outputBytes: output.object?.byteLength ?? 0,
    errorFile: errors.fileId,
    errorKey: errors.object?.key ?? '',
    errorBytes: errors.object?.byteLength ?? 0,
    notRun,
  };
  const items = models.map(({ model, costNano, event, succeeded, failed }) => ({
    model,
    exactCost: costNano.toString(),
    event: event === null ? '' : JSON.stringify(event),
    eventId: event?.requestId ?? '',
    succeeded,
    failed,
    promptTokens: event?.promptTokens ?? 0,
    cacheReadTokens: event?.cacheReadTokens ?? 0,
    cacheWriteTokens: event?.cacheWriteTokens ?? 0,
    completionTokens: event?.completionTokens ?? 0,
    isCounted: event?.counted === true ? 1 : 0,
    images: event?.images ?? 0,
    characters: event?.characters ?? 0,
    billedMs: event?.billedMs ?? 0,
    vendorCost: event?.vendorCostNano ?? '',
  }));
  const reply = (await callRedis(() => settleScript.run(redis, values, items))) as SettleReply;
  const [outcome, hasEnded = 0, why = ''] = reply;
  return { outcome, hasEnded: hasEnded === 1, refusal: why === '' ? null : why };
}

type SettleReply = [outcome: 'settled' | 'gone' | 'unknown', hasEnded?: 0 | 1, why?: RefusalCode | ''];

/**
 * Hands back a slice, whose lines that are not settled then run again.
 * @param pauseMs for how long no lines of the batch are taken
 * @returns where the lines wait, and the account's weight; null if they do not wait
 */
export async function returnSlice(
  redis: RedisClient,
  slice: SliceAttempt,
  pauseMs: number,
): Promise<{ readonly queue: BatchQueueName; readonly model: string; readonly weight: number } | null> {
  const values = { ...valuesOf(slice), pauseMs };
  const reply = (await callRedis(() => returnScript.run(redis, values))) as ReturnReply;
  if (reply[0] !== 'returned') return null;
  const [, queue, model, weight] = reply;
  return { queue, model, weight: Number(weight) };
}

type ReturnReply = ['gone' | 'paused'] | ['returned', BatchQueueName, string, string];

/**
 * Renews the leases of taken slices of one shard.
 * @returns for each slice, why its worker must not go on: `gone`, or the code of the lines that have not begun; null if it
 * may go on. A worker may have two attempts at a slice for a moment, if it has lost the first one.
 */
export async function renewSlices(
  redis: RedisClient,
  shard: number,
  slices: readonly SliceAttempt[],
): Promise<(RefusalCode | 'gone' | null)[]> {
  const items = slices.map(({ accountId, batchId: id, number, attempt }) => ({
    accountId,
    id,
    number,
    attempt,
  }));
  const values = { prefix: redisKeys.jobsOf(shard) };
  const reply = await callRedis(() => renewScript.run(redis, values, items));
  const reasons = slices.map((): RefusalCode | 'gone' | null => null);
  for (const [position, reason] of reply as [number, RefusalCode | 'gone'][]) reasons[position - 1] = reason;
  return reasons;
}
