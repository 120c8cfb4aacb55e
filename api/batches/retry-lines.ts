import { AppError } from '../../shared/contract/errors.ts';
import { nextWorkTurn } from '../../shared/fairness/work-turns.ts';
import type { FileSegment } from '../../shared/work/files/file-record.ts';
import type { ApiContext } from '../http/request/context.ts';
import { keyHolderOf } from '../http/request/holder.ts';
import type { Services } from '../services.ts';

const readBytes = 512 * 1024;
const newline = 0x0a;
/** Longer lines are not retried: no operation accepts them. */
const maxLineBytes = 128 * 1024 * 1024;

export interface RetriedFiles {
  readonly errorFileId: string;
  readonly inputFileId: string;
}

/**
 * Yields the lines of an input file whose ids are in an error file.
 * @throws AppError `not_found` if one of the files is gone
 */
export async function* retryLines(
  services: Services,
  context: ApiContext,
  { errorFileId, inputFileId }: RetriedFiles,
): AsyncGenerator<Buffer> {
  const { accountId } = keyHolderOf(context);
  const failed = new Set<string>();
  for await (const line of readLines(services, context, await findSegments(services, accountId, errorFileId)))
    failed.add(readCustomId(line));
  for await (const line of readLines(
    services,
    context,
    await findSegments(services, accountId, inputFileId),
  )) {
    if (failed.has(readCustomId(line))) yield Buffer.concat([line, Buffer.from('\n')]);
  }
}

async function findSegments(
  services: Services,
  accountId: string,
  id: string,
): Promise<readonly FileSegment[]> {
  const content = await services.files.findContent(accountId, id);
  if (content !== null) return content.segments;
  throw new AppError('not_found', {
    message: `The file ${id} of the batch was deleted or has expired, so its lines cannot be retried.`,
    messageRu: `Файл ${id} этого пакета удалён или срок его хранения истёк: повторить строки нельзя.`,
  });
}

const customIdPattern = /"custom_id"\s*:\s*("(?:[^"\\]|\\.)*")/;
const headBytes = 8_192;

/** The id is near the beginning of a line of ours, and usually of others. */
function readCustomId(line: Buffer): string {
  const [, text] = customIdPattern.exec(line.toString('utf8', 0, headBytes)) ?? [];
  if (text !== undefined) return JSON.parse(text) as string;
  const value = JSON.parse(line.toString('utf8')) as { readonly custom_id?: unknown };
  return typeof value.custom_id === 'string' ? value.custom_id : '';
}

/** Yields the lines of objects that follow each other, without blank ones. */
async function* readLines(
  services: Services,
  context: ApiContext,
  segments: readonly FileSegment[],
): AsyncGenerator<Buffer> {
  const { accountId } = keyHolderOf(context);
  const { signal } = context.state;
  let rest = Buffer.alloc(0);
  for (const { key, byteLength } of segments) {
    for (let at = 0; at < byteLength; at += readBytes) {
      const wanted = Math.min(readBytes, byteLength - at);
      const chunk = await services.objects.getRange(key, at, wanted, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        throw new AppError('service_unavailable', { cause: error });
      });
      if (chunk === null) throw new AppError('service_unavailable', { message: `the object ${key} is gone` });
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let start = 0;
      for (;;) {
        const end = bytes.indexOf(newline, start);
        if (end === -1) break;
        if (end > start) yield bytes.subarray(start, end);
        start = end + 1;
      }
      rest = Buffer.from(bytes.subarray(start));
      if (rest.length > maxLineBytes) throw new AppError('payload_too_large');
      await nextWorkTurn(accountId);
    }
  }
  if (rest.length > 0) yield rest;
}
