import { createHash } from 'node:crypto';
import { AppError } from '../../shared/contract/errors.ts';
import type { AcquireOptions } from '../../shared/fairness/fair-budget.ts';
import { nextFileTurn } from '../../shared/fairness/work-turns.ts';
import { fileLifetimeMs, parseFileName, type FileName } from '../../shared/storage/file-name.ts';
import { noteShare } from '../dispatch/response-memory.ts';
import { callerNetwork } from '../callers/caller-network.ts';
import { callerSignal } from '../middleware/caller-signal.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { formatContentRange, parseRange } from '../present/byte-range.ts';
import { checkPreconditions, isRangeCurrent, type Validators } from '../present/preconditions.ts';
import type { Services } from '../services.ts';
import { openRange } from './open-range.ts';
import { sendInChunks } from './send-body.ts';
import { missingFile, StoredFile } from './stored-file.ts';

/** A download that nobody reads, or reads too slowly while others wait, is cut meanwhile and gives its place to the next. */
const waitMs = 60_000;
/** A cache may answer for so long without asking, and never beyond the file's own end. */
const maxCacheSeconds = 3_600;

/**
 * Serves a kept file for a day to anyone who knows its name. There is no API key to go by, so downloads under way and
 * turns at the object store are shared by the caller's network. The file is read a range at a time, as the caller takes it.
 */
export function getFile(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const name = context.path.slice('/files/'.length);
    const parsed = parseFileName(name);
    if (parsed === null) throw missingFile();
    if (parsed.createdAtMs !== null) findSecondsLeft(parsed.createdAtMs);
    const network = callerNetwork(context.ip);
    const options: AcquireOptions = { signal: callerSignal(context.res), waitMs, refuse: refuseDownload };
    const download = await services.downloads.acquire(network, 1, options);
    noteShare(context.res, services.downloads, download);
    try {
      const file = new StoredFile(services, parsed.key, network, options);
      const createdAtMs = parsed.createdAtMs ?? (await file.describe()).storedAt.getTime();
      const version = { etag: createETag(name), lastModifiedMs: createdAtMs };
      await sendFile(context, file, parsed, version, network);
    } finally {
      download.release();
    }
  };
}

async function sendFile(
  context: ApiContext,
  file: StoredFile,
  name: FileName,
  version: Validators,
  network: string,
): Promise<void> {
  const verdict = checkPreconditions(context.headers, version);
  const isHead = context.method === 'HEAD';
  if (verdict !== 'proceed' || isHead) {
    const { objectBytes } = await file.describe();
    if (verdict === 'failed') throw failedPrecondition();
    setHeaders(context, name, version);
    context.status = verdict === 'unchanged' ? 304 : 200;
    if (verdict !== 'unchanged') context.length = objectBytes;
    return;
  }
  const wanted = isRangeCurrent(context.headers, version) ? parseRange(context.get('range')) : null;
  const { chunks, range, byteLength } = await openRange(file, wanted);
  setHeaders(context, name, version);
  if (wanted !== null) context.set('content-range', formatContentRange(range, byteLength));
  await sendInChunks(context, chunks, () => nextFileTurn(network), wanted === null ? 200 : 206);
}

function setHeaders(
  context: ApiContext,
  { contentType, disposition }: FileName,
  { etag, lastModifiedMs }: Validators,
): void {
  const secondsLeft = findSecondsLeft(lastModifiedMs);
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

/** @throws AppError where the file has come to its end */
function findSecondsLeft(createdAtMs: number): number {
  const leftMs = createdAtMs + fileLifetimeMs - Date.now();
  if (leftMs <= 0) throw missingFile();
  return Math.floor(leftMs / 1_000);
}

/** A name is never given to other bytes. The tag is a hash of it, since tags end up in logs where links should not. */
const createETag = (name: string): string =>
  `"${createHash('sha256').update(name).digest('base64url').slice(0, 22)}"`;

const failedPrecondition = (): AppError => new AppError('validation_failed', { status: 412 });

const refuseDownload = (): AppError =>
  new AppError('queue_full', {
    message:
      'Too many files are being downloaded from your address. Read those that are, and try again shortly.',
  });
