// decision 0049
import { createHash } from 'node:crypto';
import { operations } from '../../contract/operations.ts';
import { nextFileTurn } from '../../../shared/fairness/work-turns.ts';
import { fileLifetimeMs, parseFileName, type FileName } from '../../../shared/platform/storage/file-name.ts';
import { callerNetwork } from '../../http/callers/caller-network.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { inDownloadSlot, sendFile } from './send-file.ts';
import { missingFile, StoredFile } from './stored-file.ts';

/** A cache may serve a file for this long without revalidation, but never past the file's expiry. */
const maxCacheSeconds = 3_600;

/**
 * A browser shows an image on a page of its own, whose style this allows. Nothing runs, and nothing else is loaded.
 */
const filePolicy = "sandbox; default-src 'none'; img-src 'self'; style-src 'unsafe-inline'";

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
  await inDownloadSlot(services, context, { holder: network, whose: 'your network' }, async (reading) => {
    const file = new StoredFile(services, parsed.key, reading);
    const createdAtMs = parsed.createdAtMs ?? (await file.describe()).storedAt.getTime();
    await sendFile(context, {
      source: file,
      version: { etag: createETag(name), lastModifiedMs: createdAtMs },
      setHeaders: () => setHeaders(context, parsed, parsed.dueAtMs ?? createdAtMs + fileLifetimeMs),
      nextTurn: () => nextFileTurn(network),
    });
  });
});

function setHeaders(context: ApiContext, { contentType, disposition }: FileName, dueAtMs: number): void {
  const secondsLeft = findSecondsLeft(dueAtMs);
  context.set({
    'x-content-type-options': 'nosniff',
    'content-security-policy': filePolicy,
    'content-disposition': disposition,
    'cache-control': `private, max-age=${Math.min(secondsLeft, maxCacheSeconds)}, must-revalidate`,
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
