// decision 0062
import type { ErrorCode } from '../contract/error-kinds.ts';
import { isRecord, type JsonRecord } from '../encoding/json-record.ts';
import { shorten } from '../platform/runtime/shorten.ts';

/**
 * The record that settlement writes for a request, without the amounts, which the script adds. It becomes one ledger
 * entry and one row of the request log. Version 1; readers reject unknown versions.
 */
export interface UsageEvent {
  readonly v: 1;
  readonly requestId: string;
  readonly accountId: string;
  readonly model: string;
  /** When the request was admitted; Unix milliseconds. */
  readonly at: number;
  readonly durationMs: number;
  readonly success: boolean;
  /** HTTP status of the response; 200 on success. */
  readonly responseCode: number;
  readonly errorCode: ErrorCode | null;
  readonly details: string | null;
  readonly userIp: string;
  readonly promptTokens: number;
  readonly cacheReadTokens: number | null;
  readonly cacheWriteTokens: number | null;
  readonly completionTokens: number;
  /** Part of the completion tokens. Absent if the vendor did not report it, for batches, and in events of release 0.1. */
  readonly reasoningTokens?: number;
  /** From admission to the first output of a streamed chat. Absent for everything else, and in events of release 0.1. */
  readonly firstTokenMs?: number;
  /** Whether the usage is our own estimate, because the vendor reported none. */
  readonly counted: boolean;
  readonly images: number;
  readonly imageQuality: string | null;
  readonly imageSize: string | null;
  readonly characters: number;
  /** Time at the vendor that is billed if the price is per second; milliseconds. */
  readonly billedMs: number;
  readonly priceVersion: string;
  /** The end user named by the caller, if any. */
  readonly user: string | null;
  /**
   * Hash of the Idempotency-Key that it was sent with; null without one. Absent for lines of a batch, and in events of
   * releases that did not note it.
   */
  readonly claimHash?: string | null;
  /** For lines of a batch: how many they are. Absent for a single request. */
  readonly lines?: number;
  /** For lines of a batch that are settled: how many of them failed. */
  readonly failedLines?: number;
  /** The calls to vendors, in their order. Absent if there was none, for lines of a batch, and in events of release 0.1. */
  readonly calls?: readonly RecordedCall[];
  /** When each of `calls` began, in ms from the admission; in a list of its own, which earlier releases ignore. */
  readonly callStartsMs?: readonly number[];
  /**
   * What the vendors charge the operator, in nano-roubles; as text, because Lua and JSON have no such integers. Absent
   * if it is unknown.
   */
  readonly vendorCostNano?: string;
}

/**
 * A call to a vendor, as a list, so that a request that succeeded at once takes few bytes: one that succeeded has only
 * the first two elements. The status is null if the vendor sent none, and the reason is the vendor's own text.
 */
export type RecordedCall =
  | readonly [upstream: string, durationMs: number]
  | readonly [upstream: string, durationMs: number, status: number | null, reason: string];

/** The upstream that was called last, to which a request counts; null if none was. */
export const lastUpstreamOf = ({ calls = [] }: Pick<UsageEvent, 'calls'>): string | null =>
  calls.at(-1)?.[0] ?? null;

/** Further calls replace the last one, so that the first failures and the end are known. */
export const maxRecordedCalls = 10;
/** Characters. */
export const maxCallReason = 500;

export interface RefillEvent {
  readonly v: 1;
  readonly refillId: string;
  readonly accountId: string;
  readonly at: number;
  /** Where the money came from. */
  readonly source: 'code' | 'admin' | 'demo' | 'signup' | 'test';
  /** The redeemed code as it was issued, now worthless. Null for a refill without one. */
  readonly code: string | null;
  /** The operator's note to the account's owner. */
  readonly note?: string;
  /** The name of the operator's token; `command` for the admin command. Absent in events of earlier releases. */
  readonly token?: string;
  /**
   * For a credit with an Idempotency-Key: the nano-roubles and free requests that were requested. A debit takes at most
   * what is available, so these may differ from what was taken.
   */
  readonly requestedNano?: string;
  readonly requestedFree?: number;
}

/** Whether the refill has a row in the account's refill log. The balances of test accounts have none. */
export const isRefillListed = ({ source, code }: RefillEvent): boolean => source !== 'test' || code !== null;

/** Creates the event of a refill that happens now. */
export function createRefillEvent(
  refillId: string,
  accountId: string,
  source: RefillEvent['source'],
  code: string | null = null,
): RefillEvent {
  return { v: 1, refillId, accountId, at: Date.now(), source, code };
}

/** Why an entry's event could not be read and was replaced; null if it could be read. */
type Damage = string | null;

/** An entry of a shard's stream, as the scripts write it. */
export type LedgerEntry =
  | {
      readonly kind: 'charge';
      readonly streamId: StreamId;
      readonly costNano: bigint;
      /** How much the reported usage exceeded the spendable balance. Never charged. */
      readonly shortfallNano: bigint;
      readonly free: boolean;
      /**
       * Numbers the account's rows in the request log from 1, without gaps; the log is paged by it. 0 for lines of a
       * batch, which have no row of their own.
       */
      readonly ordinal: number;
      /**
       * For the row of a batch, which is written when it ends and costs nothing: what its lines of that model have cost.
       * Null for all other charges.
       */
      readonly totalNano: bigint | null;
      /** The day (`YYYY-MM-DD`, in UTC) to which budgets count it. */
      readonly day: string;
      readonly event: UsageEvent;
      readonly damage: Damage;
    }
  | {
      readonly kind: 'refill';
      readonly streamId: StreamId;
      readonly amountNano: bigint;
      readonly freeRequests: number;
      /**
       * Numbers the rows of the account's refill log from 1, without gaps; null for a refill without a row. Earlier releases
       * numbered only redeemed codes.
       */
      readonly ordinal: number | null;
      readonly event: RefillEvent;
      readonly damage: Damage;
    };

/** A stream id as two integers. As text, `-10` would sort before `-9`. */
export interface StreamId {
  readonly ms: number;
  readonly seq: number;
}

export const firstStreamId: StreamId = { ms: 0, seq: 0 };

export function parseStreamId(text: string): StreamId {
  const [ms, seq] = text.split('-');
  return { ms: Number(ms), seq: Number(seq) };
}

export function formatStreamId(id: StreamId): string {
  return `${id.ms}-${id.seq}`;
}

export function isAfter(a: StreamId, b: StreamId): boolean {
  return a.ms > b.ms || (a.ms === b.ms && a.seq > b.seq);
}

/** An entry whose amounts cannot be read: it was damaged, or a later release wrote it. It is ignored. */
export class UnreadableEntry extends Error {
  override readonly name = 'UnreadableEntry';
}

/** Model and price version of the event that replaces an unreadable one. */
export const unknownModel = 'unknown';
const unknownCode = 'unknown';

/**
 * Reads an entry. Its amounts are in separate fields, so they are applied even if its event cannot be read. Such an
 * event is replaced by one with only the ids, and `damage` has the reason. An event may have fields that this release
 * does not know. A restored account must apply the same entries, so restore-script.ts has the same conditions.
 * @throws UnreadableEntry if it does not begin with its kind and its account, or an amount or its ordinal is invalid
 */
export function parseLedgerEntry(streamIdText: string, fields: readonly string[]): LedgerEntry {
  const readText = (name: string, pattern: RegExp): string => {
    const text = findValue(fields, name) ?? '';
    // Lua has no larger integers either.
    if (pattern.test(text) && Number.isSafeInteger(Number(text))) return text;
    throw new UnreadableEntry(`${name} is ${JSON.stringify(shorten(text, 40))}`);
  };
  const streamId = parseStreamId(streamIdText);
  // Scripts find the entries of an account by these positions.
  const [first, kind, second, accountId = ''] = fields;
  if (first !== 'kind' || second !== 'account' || accountId === '')
    throw new UnreadableEntry('it does not begin with its kind and its account');
  const parsed = parseEvent(findValue(fields, 'event'));
  switch (kind) {
    case 'charge': {
      const costNano = BigInt(readText('cost', /^\d+$/));
      const shortfallNano = BigInt(readText('shortfall', /^\d+$/));
      const free = readText('free', /^[01]$/) === '1';
      const ordinal = Number(readText('ordinal', /^\d+$/));
      const requestId = findValue(fields, 'id') ?? toId(parsed?.['requestId'], accountId, streamIdText);
      const ids = { requestId, accountId };
      const damage = findDamage(parsed, ids, usageChecks);
      const event = damage === null ? (parsed as unknown as UsageEvent) : replaceUsage(ids, streamId.ms);
      const total = findValue(fields, 'total') ?? '';
      const totalNano = /^\d+$/.test(total) ? BigInt(total) : null;
      const day = nameDay(findValue(fields, 'day'), event.at);
      return { kind, streamId, costNano, shortfallNano, free, ordinal, totalNano, day, event, damage };
    }
    case 'refill': {
      const ordinal =
        findValue(fields, 'ordinal') !== undefined ? Number(readText('ordinal', /^\d+$/)) : null;
      const amounts = {
        amountNano: BigInt(readText('amount', /^-?\d+$/)),
        freeRequests: Number(readText('free', /^-?\d+$/)),
        ordinal,
      };
      const refillId = findValue(fields, 'id') ?? toId(parsed?.['refillId'], accountId, streamIdText);
      const ids = { refillId, accountId };
      const damage = findDamage(parsed, ids, refillChecks);
      const event =
        damage === null
          ? (parsed as unknown as RefillEvent)
          : replaceRefill(ids, streamId.ms, ordinal !== null);
      return { kind, streamId, ...amounts, event, damage };
    }
    default:
      throw new UnreadableEntry(`kind is ${JSON.stringify(shorten(kind ?? '', 40))}`);
  }
}

/**
 * Returns the day of a charge as a text.
 * @param day counted from 1970, if the clock of the api process had another one when the request was admitted
 * @param at the time of the event
 */
function nameDay(day: string | undefined, at: number): string {
  const isGiven = day !== undefined && /^\d{1,7}$/.test(day);
  return nameDayOf(new Date(isGiven ? Number(day) * 86_400_000 : at));
}

/** Returns the day of a time, in UTC: `YYYY-MM-DD`. */
export const nameDayOf = (time: Date): string => time.toISOString().slice(0, 10);

/** Returns a field's last value. An entry has so few fields that a map would take longer to build. */
export function findValue(fields: readonly string[], name: string): string | undefined {
  for (let i = (fields.length & ~1) - 2; i >= 0; i -= 2) if (fields[i] === name) return fields[i + 1];
  return undefined;
}

/** Like `parseLedgerEntry`, but returns null for an entry that is ignored. */
export function tryParseLedgerEntry(streamIdText: string, fields: readonly string[]): LedgerEntry | null {
  try {
    return parseLedgerEntry(streamIdText, fields);
  } catch (error) {
    if (error instanceof UnreadableEntry) return null;
    throw error;
  }
}

/** The id of an entry that has lost its own. */
const toId = (id: unknown, accountId: string, streamIdText: string): string =>
  typeof id === 'string' && id !== '' ? id : `${accountId}:${streamIdText}`;

/** Returns null for what is not a JSON object. */
export function parseEvent(text = ''): JsonRecord | null {
  try {
    const event: unknown = JSON.parse(text);
    return isRecord(event) ? event : null;
  } catch {
    return null;
  }
}

type UsageDetails = Omit<UsageEvent, 'v' | 'requestId' | 'accountId'>;
type RefillDetails = Omit<RefillEvent, 'v' | 'refillId' | 'accountId'>;
type Check = (value: unknown) => boolean;
/** A check per field, as pairs, because a list is quicker to go through than an object. */
type Checks = readonly (readonly [string, Check])[];
const listChecks = <T>(checks: Readonly<Record<keyof T, Check>>): Checks => Object.entries<Check>(checks);

/** Unix milliseconds that a Date can hold. */
const isTime: Check = (value) => Number.isInteger(value) && Math.abs(value as number) <= 8.64e15;
const isText: Check = (value) => typeof value === 'string';
const isFlag: Check = (value) => typeof value === 'boolean';
const isCount: Check = (value) => Number.isSafeInteger(value);
const isNumber: Check = (value) => Number.isFinite(value);
const isWholeNumber: Check = (value) => typeof value === 'string' && /^-?\d{1,16}$/.test(value);
const optional =
  (check: Check): Check =>
  (value) =>
    value === null || value === undefined || check(value);

const isRecordedCall: Check = (call) => {
  if (!Array.isArray(call)) return false;
  const [upstream, durationMs, status, reason] = call as unknown[];
  if (!isText(upstream) || !isNumber(durationMs)) return false;
  return call.length === 2 || (optional(isCount)(status) && isText(reason));
};

const usageChecks = listChecks<UsageDetails>({
  model: isText,
  at: isTime,
  durationMs: isNumber,
  success: isFlag,
  responseCode: isCount,
  errorCode: optional(isText),
  details: optional(isText),
  userIp: isText,
  promptTokens: isCount,
  cacheReadTokens: optional(isCount),
  cacheWriteTokens: optional(isCount),
  completionTokens: isCount,
  reasoningTokens: optional(isCount),
  firstTokenMs: optional(isNumber),
  counted: optional(isFlag),
  images: optional(isCount),
  imageQuality: optional(isText),
  imageSize: optional(isText),
  characters: optional(isCount),
  billedMs: optional(isNumber),
  priceVersion: isText,
  user: optional(isText),
  claimHash: optional(isText),
  lines: optional(isCount),
  failedLines: optional(isCount),
  callStartsMs: optional((starts) => Array.isArray(starts) && starts.every(isNumber)),
  calls: optional((calls) => Array.isArray(calls) && calls.every(isRecordedCall)),
  vendorCostNano: optional((cost) => isText(cost) && /^\d{1,30}$/.test(cost as string)),
});

const refillChecks = listChecks<RefillDetails>({
  at: isTime,
  source: isText,
  code: optional(isText),
  note: optional(isText),
  token: optional(isText),
  requestedNano: optional(isWholeNumber),
  requestedFree: optional(isCount),
});

/** @returns why the event cannot be used; null if it can */
function findDamage(
  event: JsonRecord | null,
  ids: Readonly<Record<string, string>>,
  checks: Checks,
): string | null {
  if (event === null) return 'its event is not a JSON object';
  if (event['v'] !== 1) return `its event has version ${shorten(JSON.stringify(event['v']) ?? 'none', 40)}`;
  for (const [name, id] of Object.entries(ids))
    if (event[name] !== id) return `its event has a different ${name}`;
  for (const [name, check] of checks) if (!check(event[name])) return `its event has an invalid ${name}`;
  return null;
}

const replaceRefill = (
  ids: Pick<RefillEvent, 'refillId' | 'accountId'>,
  at: number,
  isOfCode: boolean,
): RefillEvent => ({
  v: 1,
  ...ids,
  at,
  source: isOfCode ? 'code' : 'admin',
  code: isOfCode ? unknownCode : null,
});

/** The usage of a request for which nothing is known, or for which no model was called. */
export const nothingUsed = {
  promptTokens: 0,
  cacheReadTokens: null,
  cacheWriteTokens: null,
  completionTokens: 0,
  counted: false,
  images: 0,
  imageQuality: null,
  imageSize: null,
  characters: 0,
  billedMs: 0,
} as const;

const replaceUsage = (ids: Pick<UsageEvent, 'requestId' | 'accountId'>, at: number): UsageEvent => ({
  v: 1,
  ...ids,
  model: unknownModel,
  at,
  durationMs: 0,
  success: true,
  responseCode: 200,
  errorCode: null,
  details: null,
  userIp: '',
  ...nothingUsed,
  priceVersion: unknownModel,
  user: null,
});
