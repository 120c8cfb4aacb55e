import { isBatchEndpoint, type BatchEndpoint } from '../../contract/batch-terms.ts';
import { AppError } from '../../contract/errors.ts';
import { nextWorkTurn } from '../../fairness/work-turns.ts';
import type { ObjectStore } from '../../platform/storage/object-store.ts';
import { CustomIds } from '../files/custom-ids.ts';
import type { FileSegment } from '../files/file-record.ts';
import type { FileStore } from '../files/file-store.ts';
import { InputLost, readLines, readPieces, type FileLine, type LineReading } from '../files/read-lines.ts';
import type { BatchOptions } from './plan-batch.ts';
import { hasBatchEnded, type BatchRecord } from './batch-record.ts';

/** A batch whose failed lines can be run again. */
export interface RetriableBatch extends BatchRecord {
  readonly endpoint: BatchEndpoint;
  readonly errorFileId: string;
}

/** @throws AppError `validation_failed` if the batch cannot be retried */
export function checkRetriable(batch: BatchRecord): asserts batch is RetriableBatch {
  if (!hasBatchEnded(batch)) throw cannotRetry('The batch has not ended. Wait for its end, or cancel it.');
  if (batch.errorFileId === null || !isBatchEndpoint(batch.endpoint))
    throw cannotRetry('The batch has no failed lines.');
}

/** Returns what the new batch has in common with the batch. */
export const toRetryOptions = ({
  id,
  endpoint,
  metadata,
  maxCostNano,
  resultLifetimeSeconds,
  webhookUrl,
  publicUrl,
}: RetriableBatch): BatchOptions => ({
  retryOf: id,
  endpoint,
  metadata,
  maxCostNano,
  resultLifetimeSeconds,
  webhookUrl,
  publicUrl,
});

/** The name of the input file of the new batch. */
export const retryFileName = 'retry.jsonl';

const cannotRetry = (message: string): AppError => new AppError('validation_failed', { message });

export interface RetryDeps {
  readonly files: Pick<FileStore, 'findContent'>;
  readonly objects: Pick<ObjectStore, 'getRange'>;
}

/** A longer line is read twice: to find its `custom_id`, and again if it failed. */
const maxLineBytes = 64 * 1024;
/** How long lines are read in one go. */
const turnMs = 4;
const newline = Buffer.from('\n');

/**
 * Yields the lines of a batch's input whose ids are in its error file, in pieces, with their line breaks. Takes time in
 * proportion to both files, and memory for a piece of a line and for the hashes of the ids.
 * @throws AppError `not_found` if one of the files is gone, `service_unavailable`; the signal's reason
 */
export async function* retryLines(
  deps: RetryDeps,
  { accountId, errorFileId, inputFileId }: RetriableBatch,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const errors = await findSegments(deps, accountId, errorFileId, 'error file');
  const input = await findSegments(deps, accountId, inputFileId, 'input file');
  try {
    const objects = readInTurns(deps.objects, accountId);
    yield* selectLines(objects, { errors, input }, { accountId, maxLineBytes, signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SyntaxError || error instanceof TypeError) throw error;
    if (error instanceof InputLost) throw filesLost();
    throw new AppError('service_unavailable', { cause: error });
  }
}

/** Long lines take an event-loop turn for each read. */
const readInTurns = (objects: RetryDeps['objects'], accountId: string): RetryDeps['objects'] => ({
  getRange: async (...range) => {
    await nextWorkTurn(accountId);
    return await objects.getRange(...range);
  },
});

async function findSegments(
  { files }: RetryDeps,
  accountId: string,
  id: string,
  name: string,
): Promise<readonly FileSegment[]> {
  const content = await files.findContent(accountId, id);
  if (content !== null) return content.segments;
  throw new AppError('not_found', {
    message: `The ${name} of the batch, ${id}, was deleted or has expired, so its lines cannot be retried.`,
    messageRu: `Файл ${id} этого пакета удалён или срок его хранения истёк: повторить строки нельзя.`,
  });
}

const filesLost = (): AppError =>
  new AppError('not_found', {
    message:
      'The input file or the error file of the batch was lost in the object store, so its lines cannot be retried.',
    messageRu: 'Входной файл или файл ошибок этого пакета утрачен в хранилище: повторить строки нельзя.',
  });

interface RetriedSegments {
  readonly errors: readonly FileSegment[];
  readonly input: readonly FileSegment[];
}

async function* selectLines(
  objects: RetryDeps['objects'],
  { errors, input }: RetriedSegments,
  reading: LineReading,
): AsyncGenerator<Buffer> {
  const failed = new CustomIds();
  let count = 0;
  for await (const line of readSegments(objects, errors, reading)) failed.add(readCustomId(line), ++count);
  for await (const line of readSegments(objects, input, reading)) {
    if (!failed.has(readCustomId(line))) continue;
    const { key, start, byteLength } = line;
    if (line.bytes !== null) yield line.bytes;
    else yield* readPieces(objects, key, { from: start, to: start + byteLength }, reading.signal);
    yield newline;
  }
}

type SegmentLine = FileLine & Pick<FileSegment, 'key'>;

/** Reads segments, each of which ends with a whole line, in event-loop turns of their account. */
async function* readSegments(
  objects: RetryDeps['objects'],
  segments: readonly FileSegment[],
  reading: LineReading,
): AsyncGenerator<SegmentLine> {
  let startedMs = performance.now();
  for (const { key, byteLength } of segments) {
    for await (const line of readLines(objects, { key, from: 0, to: byteLength, byteLength }, reading)) {
      yield { key, ...line };
      if (performance.now() - startedMs < turnMs) continue;
      await nextWorkTurn(reading.accountId);
      startedMs = performance.now();
    }
  }
}

/** The lines of both files were checked, or are ours. */
function readCustomId(line: FileLine): string {
  if (line.bytes === null) return line.customId;
  return (JSON.parse(line.bytes.toString('utf8')) as { readonly custom_id: string }).custom_id;
}
