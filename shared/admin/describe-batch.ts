import { toRubNumber } from '../encoding/money.ts';
import { parseBatch, type BatchRecord } from '../work/batches/batch-record.ts';
import { batchStatuses } from '../contract/batch-terms.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { AppError } from '../contract/errors.ts';

type Fields = Readonly<Record<string, string>>;

/** Describes a batch with everything in its record, for an operator. @throws AppError `not_found` if it has just been deleted */
export async function describeBatch(redis: RedisClient, accountId: string, id: string) {
  const [fields, slices] = await Promise.all([
    callRedis(() => redis.hgetall(redisKeys.batch(accountId, id))),
    callRedis(() => redis.hgetall(redisKeys.batchSlices(accountId, id))),
  ]);
  const batch = parseBatch(accountId, id, fields);
  if (batch === null) throw noLongerExists(id);
  return {
    id,
    account: accountId,
    status: batch.status,
    stopped_because: batch.refusal,
    endpoint: batch.endpoint,
    model: batch.model,
    queue: batch.queue,
    ...describeTimes(batch),
    lines_total: batch.lines,
    lines_succeeded: batch.succeeded,
    lines_failed: batch.failed,
    lines_not_run: batch.notRun,
    cost: toRubNumber(batch.costNano),
    reserved: toRubNumber(batch.reservedNano),
    max_cost: batch.maxCostNano === null ? null : toRubNumber(batch.maxCostNano),
    prompt_tokens: batch.usage.promptTokens,
    cached_tokens: batch.usage.cachedTokens,
    completion_tokens: batch.usage.completionTokens,
    reasoning_tokens: batch.usage.reasoningTokens,
    input_file: batch.inputFileId,
    input_object: fields['key'] ?? null,
    input_bytes: readNumber(fields, 'size'),
    // Lines beyond this position have not been taken by a worker yet.
    taken_bytes: readNumber(fields, 'cur'),
    slice_bytes: readNumber(fields, 'sb'),
    slices_taken: readNumber(fields, 'ns'),
    turns_of_model: fields['tm'] ?? null,
    output_file: batch.outputFileId,
    error_file: batch.errorFileId,
    results_kept_seconds: batch.resultLifetimeSeconds,
    caller_address: batch.userIp,
    metadata: batch.metadata,
    webhook_url: batch.webhookUrl,
    webhook: fields['wh'] === undefined ? null : (JSON.parse(fields['wh']) as object),
    errors: batch.faults,
    models: describeModels(fields),
    slices: describeSlices(slices),
  };
}

export const noLongerExists = (id: string): AppError =>
  new AppError('not_found', { message: `The batch ${id} no longer exists.` });

const readNumber = (fields: Fields, name: string): number => Number(fields[name] ?? 0);

function describeTimes({ createdAtMs, expiresAtMs, reachedAtMs }: BatchRecord): object {
  const toText = (ms: number | undefined): string | null =>
    ms === undefined ? null : new Date(ms).toISOString();
  const reached = batchStatuses
    .filter((status) => status !== 'validating' && reachedAtMs[status] !== undefined)
    .map((status) => [`${status}_at`, toText(reachedAtMs[status])]);
  return {
    created_at: toText(createdAtMs),
    expires_at: toText(expiresAtMs),
    ...(Object.fromEntries(reached) as object),
  };
}

/** The sums of a model's settled lines, as settle-lines.lua writes them. Lines that reached no model are not included. */
interface ModelSum {
  readonly ok: number;
  readonly bad: number;
  readonly pt: number;
  readonly ct: number;
  readonly images: number;
  readonly cost: string;
}

function describeModels(fields: Fields): object[] {
  return Object.entries(fields).flatMap(([name, text]) => {
    if (!name.startsWith('sum:')) return [];
    const sum = JSON.parse(text) as ModelSum;
    return {
      model: name.slice('sum:'.length),
      succeeded: sum.ok,
      failed: sum.bad,
      prompt_tokens: sum.pt,
      completion_tokens: sum.ct,
      images: sum.images,
      cost: toRubNumber(BigInt(sum.cost)),
    };
  });
}

/** Slices that have been taken and are not settled, in the order of the file. See batch-functions.lua. */
function describeSlices(slices: Fields): object[] {
  return Object.entries(slices)
    .map(([number, text]) => {
      const [from, to, attempt, worker, deaths, step, reserved] = text.split(' ');
      return {
        slice: Number(number),
        from_byte: Number(from),
        bytes: Number(to) - Number(from),
        // Null if it waits to be taken again.
        worker: worker === '-' ? null : worker,
        attempt: Number(attempt),
        deaths: Number(deaths),
        settlements: Number(step),
        reserved: toRubNumber(BigInt(reserved ?? 0)),
      };
    })
    .toSorted((one, other) => one.slice - other.slice);
}
