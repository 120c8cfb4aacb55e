// decision 0049
import { createHash } from 'node:crypto';
import { AppError } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import type { AcquireOptions } from '../../../shared/fairness/fair-budget.ts';
import { nextFileTurn } from '../../../shared/fairness/work-turns.ts';
import { fileLifetimeMs, parseFileName, type FileName } from '../../../shared/platform/storage/file-name.ts';
import { callerNetwork } from '../../http/callers/caller-network.ts';
import { trackShare } from '../../requests/replies/response-memory.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { formatContentRange, parseRange } from './byte-range.ts';
import { checkPreconditions, isRangeCurrent, type Validators } from './preconditions.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { openRange } from './open-range.ts';
import { sendInChunks } from '../../responses/send-body.ts';
import { missingFile, StoredFile } from './stored-file.ts';

/**
 * Maximum wait for a download slot (ms). Long enough for slots to become available: stalled downloads are disconnected
 * within this time, and so are slow ones while others wait.
 */
const waitMs = 60_000;
/** A cache may serve a file for this long without revalidation, but never past the file's expiry. */
const maxCacheSeconds = 3_600;

/**
 * Serves a stored file for a day to anyone who knows its name. There is no API key, so download slots and object store
 * reads are shared fairly among the callers' networks. The file is read one range at a time, as the client reads it.
 */
export const getFile = defineEndpoint(operations.getFile, [beginInTurns], (services) => async (context) => {
  const name = context.path.slice('/files/'.length);
  const parsed = parseFileName(name);
  if (parsed === null) throw missingFile();
  // Throws if the file has expired.
  if (parsed.dueAtMs !== null) findSecondsLeft(parsed.dueAtMs);
  const network = callerNetwork(context.ip);
  const options: AcquireOptions = { signal: context.state.signal, waitMs, createError: tooManyDownloads };
  const download = await services.downloads.acquire(network, 1, options);
  trackShare(context.res, services.downloads, download);
  try {
    const file = new StoredFile(services, parsed.key, network, options);
    const createdAtMs = parsed.createdAtMs ?? (await file.describe()).storedAt.getTime();
    const version = { etag: createETag(name), lastModifiedMs: createdAtMs };
    const dueAtMs = parsed.dueAtMs ?? createdAtMs + fileLifetimeMs;
    await sendFile(context, file, { ...parsed, dueAtMs }, version, network);
  } finally {
    download.release();
  }
});

type DatedFile = FileName & { readonly dueAtMs: number };

async function sendFile(
  context: ApiContext,
  file: StoredFile,
  name: DatedFile,
  version: Validators,
  network: string,
): Promise<void> {
  const precondition = checkPreconditions(context.headers, version);
  const isHead = context.method === 'HEAD';
  if (precondition !== 'proceed' || isHead) {
    const { objectBytes } = await file.describe();
    if (precondition === 'failed') throw failedPrecondition();
    setHeaders(context, name, version);
    context.status = precondition === 'unchanged' ? 304 : 200;
    if (precondition !== 'unchanged') context.length = objectBytes;
    return;
  }
  const requested = isRangeCurrent(context.headers, version) ? parseRange(context.get('range')) : null;
  const { chunks, range, byteLength } = await openRange(file, requested);
  setHeaders(context, name, version);
  if (requested !== null) context.set('content-range', formatContentRange(range, byteLength));
  await sendInChunks(context, chunks, () => nextFileTurn(network), requested === null ? 200 : 206);
}

function setHeaders(
  context: ApiContext,
  { contentType, disposition, dueAtMs }: DatedFile,
  { etag, lastModifiedMs }: Validators,
): void {
  const secondsLeft = findSecondsLeft(dueAtMs);
  context.set({
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'",
    'content-disposition': disposition,
    'cache-control': `private, max-age=${Math.min(secondsLeft, maxCacheSeconds)}, must-revalidate`,
    'accept-ranges': 'bytes',
    etag,
    'last-modified': new Date(lastModifiedMs).toUTCString(),
  });
  context.type = contentType;
}

/** @throws AppError if the file has expired */
function findSecondsLeft(dueAtMs: number): number {
  const leftMs = dueAtMs - Date.now();
  if (leftMs <= 0) throw missingFile();
  return Math.floor(leftMs / 1_000);
}

/**
 * A name always refers to the same bytes. The tag is a hash of the name, because tags may be logged and links should
 * not be.
 */
const createETag = (name: string): string =>
  `"${createHash('sha256').update(name).digest('base64url').slice(0, 22)}"`;

const failedPrecondition = (): AppError => new AppError('validation_failed', { status: 412 });

const tooManyDownloads = (): AppError =>
  new AppError('queue_full', {
    message:
      'Too many files are being downloaded from your network. Finish the current downloads, and try again.',
  });
