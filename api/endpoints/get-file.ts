import { AppError } from '../../shared/contract/errors.ts';
import type { AcquireOptions } from '../../shared/fairness/fair-budget.ts';
import { nextFileTurn } from '../../shared/fairness/work-turns.ts';
import { objectLifetimeMs, type ReadRange } from '../../shared/storage/object-store.ts';
import { noteShare } from '../dispatch/response-memory.ts';
import { callerNetwork } from '../callers/caller-network.ts';
import { callerSignal } from '../middleware/caller-signal.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import type { ChunkSource } from '../present/send-chunks.ts';
import type { Services } from '../services.ts';
import { sendInChunks } from './send-body.ts';

const fileName = /^[A-Za-z0-9_-]{43}\.(?:png|jpg|webp)$/;

/** Read at once: most files in a few times, and a download that nobody reads holds no more. */
const rangeBytes = 512 * 1024;
/** A store that is slower than this for a range is away. */
const rangeTimeoutMs = 30_000;
/** A download that nobody reads, or reads too slowly while others wait, is cut meanwhile and gives its place to the next. */
const waitMs = 60_000;

/** Reads on in a file, from where the last call ended. */
type ReadOn = (target: Buffer) => Promise<ReadRange | null>;

/**
 * Serves a kept file for a day to anyone who knows its name. There is no API key to go by, so downloads under way and
 * turns at the object store are shared by the caller's network. The file is read a range at a time, as the caller takes it.
 */
export function getFile(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const key = context.path.slice('/files/'.length);
    if (!fileName.test(key)) throw missingFile();
    const network = callerNetwork(context.ip);
    const options: AcquireOptions = { signal: callerSignal(context.res), waitMs, refuse: refuseDownload };
    const download = await services.downloads.acquire(network, 1, options);
    noteShare(context.res, services.downloads, download);
    try {
      await sendFile(context, createReader(services, key, network, options), network);
    } finally {
      download.release();
    }
  };
}

function createReader(
  { objects, downloadReads }: Services,
  key: string,
  network: string,
  options: AcquireOptions,
): ReadOn {
  const caller = options.signal!;
  let at = 0;
  return async (target) => {
    const turn = await downloadReads.acquire(network, 1, options);
    try {
      const signal = AbortSignal.any([caller, AbortSignal.timeout(rangeTimeoutMs)]);
      const read = await objects.readRange(key, at, target, signal);
      if (read === null) return null;
      const wanted = Math.min(target.length, read.objectBytes - at);
      if (read.byteLength < wanted) throw new Error('the object store sent less than it said');
      at += read.byteLength;
      return read;
    } catch (error) {
      caller.throwIfAborted();
      throw new AppError('service_unavailable', { cause: error });
    } finally {
      turn.release();
    }
  };
}

async function sendFile(context: ApiContext, readOn: ReadOn, network: string): Promise<void> {
  const start = Buffer.allocUnsafeSlow(rangeBytes);
  const file = await readOn(start);
  if (file === null || Date.now() - file.storedAt.getTime() > objectLifetimeMs) throw missingFile();
  context.set('x-content-type-options', 'nosniff');
  context.set('cache-control', 'private, max-age=3600');
  context.set('content-security-policy', "default-src 'none'");
  context.type = file.contentType;
  if (context.method === 'HEAD') {
    context.status = 200;
    context.length = file.objectBytes;
    return;
  }
  const chunks = chunkFile(start.subarray(0, file.byteLength), file.objectBytes, readOn);
  await sendInChunks(context, chunks, () => nextFileTurn(network));
}

/** @param start what was read already */
function chunkFile(start: Buffer, byteLength: number, readOn: ReadOn): ChunkSource {
  let at = 0;
  return {
    maxChunkBytes: rangeBytes,
    byteLength,
    async write(target) {
      if (at === byteLength) return 0;
      const length = at === 0 ? start.copy(target) : (await readOn(target))?.byteLength;
      // It has been deleted meanwhile.
      if (length === undefined) throw new AppError('service_unavailable');
      at += length;
      return length;
    },
  };
}

const missingFile = (): AppError =>
  new AppError('not_found', {
    message: 'There is no such file. Files are kept for 24 hours: ask for the image again.',
  });

const refuseDownload = (): AppError =>
  new AppError('queue_full', {
    message:
      'Too many files are being downloaded from your address. Read those that are, and try again shortly.',
  });
