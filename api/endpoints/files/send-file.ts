import type { IncomingHttpHeaders } from 'node:http';
import { AppError } from '../../../shared/contract/errors.ts';
import type { AcquireOptions } from '../../../shared/fairness/fair-budget.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { trackShare } from '../../requests/replies/response-memory.ts';
import { sendInChunks } from '../../responses/send-body.ts';
import type { Services } from '../../services.ts';
import { formatContentRange, parseRange } from './byte-range.ts';
import { openRange, type RangeSource } from './open-range.ts';
import { checkPreconditions, isRangeCurrent, type Validators } from './preconditions.ts';
import type { FileReading } from './stored-file.ts';

/**
 * Maximum wait for a download slot (ms). Long enough for slots to become available: stalled downloads are disconnected
 * within this time, and so are slow ones while others wait.
 */
const waitMs = 60_000;

/**
 * Runs a download in a slot of its holder, which it holds until the response is sent.
 * @param whose for the error when there is no slot: `your network`
 * @throws AppError `queue_full`
 */
export async function inDownloadSlot(
  services: Services,
  context: ApiContext,
  { holder, whose }: { readonly holder: string; readonly whose: string },
  download: (reading: FileReading) => Promise<void>,
): Promise<void> {
  const createError = (): AppError =>
    new AppError('queue_full', {
      message: `Too many files are being downloaded from ${whose}. Finish the current downloads, and try again.`,
    });
  const options: AcquireOptions = { signal: context.state.signal, waitMs, createError };
  const slot = await services.downloads.acquire(holder, 1, options);
  trackShare(context.res, services.downloads, slot);
  try {
    await download({ holder, options });
  } finally {
    slot.release();
  }
}

/** A file to send, and how. */
export interface SentFile {
  readonly source: RangeSource;
  readonly version: Validators;
  /** Whether the client has the start of this version of the file. By default, if `If-Range` names the version. */
  readonly isRangeCurrent?: (headers: IncomingHttpHeaders) => boolean;
  /** Sets the headers of a response that has the file or says that it has not changed. */
  readonly setHeaders: () => void;
  /** Waits for a turn to send more of the file. */
  readonly nextTurn: () => Promise<void>;
}

/** Responds to GET or HEAD with a file or a range of it, as HTTP's conditional headers require. */
export async function sendFile(context: ApiContext, file: SentFile): Promise<void> {
  const { source, version, setHeaders, nextTurn } = file;
  const precondition = checkPreconditions(context.headers, version);
  const isHead = context.method === 'HEAD';
  if (precondition !== 'proceed' || isHead) {
    const { objectBytes } = await source.describe();
    if (precondition === 'failed') throw new AppError('validation_failed', { status: 412 });
    setHeaders();
    setValidators(context, version);
    context.status = precondition === 'unchanged' ? 304 : 200;
    if (precondition !== 'unchanged') context.length = objectBytes;
    return;
  }
  const isCurrent = file.isRangeCurrent?.(context.headers) ?? isRangeCurrent(context.headers, version);
  const requested = isCurrent ? parseRange(context.get('range')) : null;
  const { chunks, range, byteLength } = await openRange(source, requested);
  setHeaders();
  setValidators(context, version);
  if (requested !== null) context.set('content-range', formatContentRange(range, byteLength));
  await sendInChunks(context, chunks, nextTurn, requested === null ? 200 : 206);
}

function setValidators(context: ApiContext, { etag, lastModifiedMs }: Validators): void {
  context.set({
    'accept-ranges': 'bytes',
    etag,
    'last-modified': new Date(lastModifiedMs).toUTCString(),
  });
}
