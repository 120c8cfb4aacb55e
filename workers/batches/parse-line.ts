import { batchOperations, type BatchEndpoint } from '../../shared/contract/batch-terms.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { isRecord, type JsonRecord } from '../../shared/encoding/json-record.ts';
import { nextWorkTurn } from '../../shared/fairness/work-turns.ts';
import { JsonBodyReader } from '../../shared/preparing/json-body.ts';
import { LongLine } from '../../shared/work/files/long-line.ts';
import type { FileLine } from '../../shared/work/files/read-lines.ts';

/** The names around the body of a line, and its `custom_id`. */
const maxAroundBodyBytes = 8_192;

/** A longer line is parsed in the account's event-loop turns. */
const smallLineBytes = 64 * 1024;

/** The longest line of an endpoint that is read whole. */
export const maxLineBytes = (endpoint: BatchEndpoint): number =>
  batchOperations[endpoint].bodyLimitBytes + maxAroundBodyBytes;

/** A line as its file has it. */
export interface ParsedLine {
  readonly customId: string;
  readonly body: unknown;
  /** Why a single request with this body would not have been parsed; null if it would. */
  readonly error: AppError | null;
}

/** Parses a line within the limits of a single request: of bytes, depth and number of values. */
export async function parseLine(
  line: FileLine,
  endpoint: BatchEndpoint,
  accountId: string,
): Promise<ParsedLine> {
  const fail = async (error: AppError): Promise<ParsedLine> => {
    const customId = await readCustomId(line, accountId);
    return { customId, body: null, error };
  };
  if (line.bytes === null) return await fail(new AppError('payload_too_large'));
  let value: unknown;
  try {
    value = await parse(line.bytes, endpoint, accountId);
  } catch (error) {
    return await fail(error instanceof AppError ? error : invalidLine(error));
  }
  if (!isRecord(value) || typeof value['custom_id'] !== 'string') return await fail(invalidLine());
  const customId = value['custom_id'];
  const { bodyLimitBytes } = batchOperations[endpoint];
  if (line.byteLength > bodyLimitBytes && line.byteLength - countAround(value) > bodyLimitBytes)
    return { customId, body: null, error: new AppError('payload_too_large') };
  return { customId, body: value['body'] ?? {}, error: null };
}

/** Bytes around the body of a line that has no others and no spaces. */
function countAround(line: JsonRecord): number {
  const names = ['custom_id', 'method', 'url'].filter((name) => typeof line[name] === 'string');
  const around = Object.fromEntries(names.map((name) => [name, line[name]]));
  return Buffer.byteLength(JSON.stringify({ ...around, body: '' })) - 2;
}

/** The file was checked when it was stored, so that does not happen. */
const invalidLine = (cause?: unknown): AppError =>
  new AppError('validation_failed', { message: 'The line is not a request.', cause });

async function parse(bytes: Buffer, endpoint: BatchEndpoint, accountId: string): Promise<unknown> {
  if (bytes.length <= smallLineBytes) return JSON.parse(bytes.toString('utf8')) as unknown;
  const { bodyIntegers = 0 } = batchOperations[endpoint] as { readonly bodyIntegers?: number };
  const reader = new JsonBodyReader(bodyIntegers, { isWithinLine: true });
  await pushInTurns(reader, bytes, accountId);
  return reader.end();
}

/** Reads the id of a line without its other values. Empty if it has none. */
export async function readCustomId(line: FileLine, accountId: string): Promise<string> {
  if (line.bytes === null) return line.customId;
  const reader = new LongLine('names');
  await pushInTurns(reader, line.bytes, accountId);
  const { custom_id: id } = reader.facts;
  return typeof id === 'string' ? id : '';
}

async function pushInTurns(
  reader: { push(chunk: Buffer): unknown },
  bytes: Buffer,
  accountId: string,
): Promise<void> {
  for (let at = 0; at < bytes.length; at += smallLineBytes) {
    if (at > 0) await nextWorkTurn(accountId);
    reader.push(bytes.subarray(at, at + smallLineBytes));
  }
}
