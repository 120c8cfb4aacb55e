import { batchStatuses, type BatchStatus } from '../../contract/batch-terms.ts';
import type { BatchQueueName } from '../jobs/job-line.ts';

export type { BatchStatus };

/** Why the remaining lines of a batch are not run. */
export type RefusalCode =
  | 'insufficient_balance'
  | 'budget_exceeded'
  | 'key_expired'
  | 'batch_cancelled'
  | 'batch_expired'
  | 'account_banned'
  | 'input_lost';

/** A fault of an input file, as in OpenAI's `errors.data`. */
export interface BatchFault {
  readonly code: string;
  /** From 1. Null if it is not about one line. */
  readonly line: number | null;
  readonly message: string;
  readonly param: string | null;
}

/** A batch as stored in Redis. All times are in milliseconds, from Redis's clock. */
export interface BatchRecord {
  readonly id: string;
  readonly accountId: string;
  readonly status: BatchStatus;
  readonly endpoint: string;
  readonly queue: BatchQueueName;
  /** The model that most lines name. If no line names one of the catalog, the name in the first lines, which may be ''. */
  readonly model: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  /** When it got each status. */
  readonly reachedAtMs: Readonly<Partial<Record<BatchStatus, number>>>;
  /** The address of the caller who created it. */
  readonly userIp: string;
  readonly inputFileId: string;
  readonly lines: number;
  readonly succeeded: number;
  readonly failed: number;
  /** The part of the failed lines that were not run. */
  readonly notRun: number;
  readonly costNano: bigint;
  readonly reservedNano: bigint;
  /** The most that the batch may cost. Null if its caller set no maximum. */
  readonly maxCostNano: bigint | null;
  readonly usage: BatchUsage;
  /** Null until it has lines. */
  readonly outputFileId: string | null;
  readonly errorFileId: string | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly refusal: RefusalCode | null;
  readonly faults: readonly BatchFault[];
  /** How long its result files are kept. */
  readonly resultLifetimeSeconds: number;
  readonly webhookUrl: string | null;
  /** The public URL of the gateway, for webhooks. */
  readonly publicUrl: string;
  /** The batch of its failed lines; null if it was not retried. */
  readonly retriedAs: string | null;
}

export interface BatchUsage {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens: number;
}

export const hasBatchEnded = ({ status }: Pick<BatchRecord, 'status'>): boolean =>
  status === 'completed' || status === 'failed' || status === 'expired' || status === 'cancelled';

/**
 * Parses a batch from the fields of its Redis hash.
 * @returns null if there is no such batch
 */
export function parseBatch(
  accountId: string,
  id: string,
  fields: Readonly<Record<string, string>>,
): BatchRecord | null {
  const { st: status, max, meta, why, errors } = fields;
  if (status === undefined) return null;
  const count = (name: string): number => Number(fields[name] ?? 0);
  const money = (name: string): bigint => BigInt(fields[name] ?? 0);
  const reached = batchStatuses.flatMap((name) => {
    const atMs = fields[`t:${name}`];
    return atMs === undefined ? [] : [[name, Number(atMs)] as const];
  });
  return {
    id,
    accountId,
    status: status as BatchStatus,
    endpoint: fields['op'] ?? '',
    queue: fields['q'] as BatchQueueName,
    model: fields['m'] ?? '',
    createdAtMs: count('at'),
    expiresAtMs: count('wi'),
    reachedAtMs: Object.fromEntries(reached),
    userIp: fields['ip'] ?? '',
    inputFileId: fields['in'] ?? '',
    lines: count('lines'),
    succeeded: count('ok'),
    failed: count('bad'),
    notRun: count('nr'),
    costNano: money('cost'),
    reservedNano: money('res'),
    maxCostNano: max === undefined ? null : BigInt(max),
    usage: {
      promptTokens: count('pt'),
      cachedTokens: count('cr'),
      completionTokens: count('ct'),
      reasoningTokens: count('rt'),
    },
    outputFileId: fields['of'] ?? null,
    errorFileId: fields['ef'] ?? null,
    metadata: meta === undefined ? null : (JSON.parse(meta) as Record<string, string>),
    refusal: why === undefined ? null : (why as RefusalCode),
    faults: errors === undefined ? [] : (JSON.parse(errors) as BatchFault[]),
    resultLifetimeSeconds: count('fl'),
    webhookUrl: fields['url'] ?? null,
    publicUrl: fields['pu'] ?? '',
    retriedAs: fields['ra'] ?? null,
  };
}
