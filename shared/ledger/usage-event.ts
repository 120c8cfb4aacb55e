import type { ErrorCode } from '../contract/error-kinds.ts';

/**
 * What settlement writes about a request, besides the amounts that the script itself adds. It becomes one ledger entry
 * and one row of the request log. Version 1; readers reject versions they do not know.
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
  /** The vendor reported no usage, so the counts are ours. */
  readonly counted: boolean;
  readonly images: number;
  readonly imageQuality: string | null;
  readonly imageSize: string | null;
  readonly characters: number;
  /** Time at the vendor that a price by time is charged for; milliseconds. */
  readonly billedMs: number;
  readonly priceVersion: string;
  /** The end user named by the caller, if any. */
  readonly user: string | null;
}

export interface RefillEvent {
  readonly v: 1;
  readonly refillId: string;
  readonly accountId: string;
  readonly at: number;
  /** Where the money came from. */
  readonly source: 'code' | 'admin' | 'demo' | 'signup' | 'test';
  /** The redeemed code as it was issued, now worthless. Null for money that came without one. */
  readonly code: string | null;
}

/** Creates the event of a refill that happens now. */
export function createRefillEvent(
  refillId: string,
  accountId: string,
  source: RefillEvent['source'],
  code: string | null = null,
): RefillEvent {
  return { v: 1, refillId, accountId, at: Date.now(), source, code };
}

/** An entry of a shard's stream, as the scripts write it. */
export type LedgerEntry =
  | {
      readonly kind: 'charge';
      readonly streamId: StreamId;
      readonly costNano: bigint;
      /** How much the reported usage exceeded the spendable balance. Never charged. */
      readonly shortfallNano: bigint;
      readonly free: boolean;
      /** Numbers the account's charges from 1, without gaps. The request log is paged by it. */
      readonly ordinal: number;
      readonly event: UsageEvent;
    }
  | {
      readonly kind: 'refill';
      readonly streamId: StreamId;
      readonly amountNano: bigint;
      readonly freeRequests: number;
      /** Numbers the account's redeemed codes from 1, without gaps; null for money that came without one. */
      readonly ordinal: number | null;
      readonly event: RefillEvent;
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

/** No entry of this release: it was changed by hand, or a later release wrote it. */
export class UnreadableEntry extends Error {
  override readonly name = 'UnreadableEntry';
}

/** @throws UnreadableEntry if this code does not know the entry's kind or version */
export function parseLedgerEntry(streamIdText: string, fields: readonly string[]): LedgerEntry {
  const values = new Map<string, string>();
  for (let i = 0; i + 1 < fields.length; i += 2) values.set(fields[i]!, fields[i + 1]!);
  const streamId = parseStreamId(streamIdText);
  const event = readEvent(values.get('event') ?? 'null', streamIdText);
  if (event?.v !== 1)
    throw new UnreadableEntry(`ledger entry ${streamIdText} has unknown version ${String(event?.v)}`);
  switch (values.get('kind')) {
    case 'charge':
      return {
        kind: 'charge',
        streamId,
        costNano: BigInt(values.get('cost') ?? '0'),
        shortfallNano: BigInt(values.get('shortfall') ?? '0'),
        free: values.get('free') === '1',
        ordinal: Number(values.get('ordinal')),
        event: event as UsageEvent,
      };
    case 'refill':
      return {
        kind: 'refill',
        streamId,
        amountNano: BigInt(values.get('amount') ?? '0'),
        freeRequests: Number(values.get('free') ?? '0'),
        ordinal: values.has('ordinal') ? Number(values.get('ordinal')) : null,
        event: event as RefillEvent,
      };
    default:
      throw new UnreadableEntry(
        `ledger entry ${streamIdText} has unknown kind ${String(values.get('kind'))}`,
      );
  }
}

function readEvent(text: string, streamIdText: string): { v?: number } | null {
  try {
    return JSON.parse(text) as { v?: number } | null;
  } catch (error) {
    throw new UnreadableEntry(`ledger entry ${streamIdText} has an event that is no JSON`, { cause: error });
  }
}
