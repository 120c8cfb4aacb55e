import { CountingTurn } from '../../catalog/count-tokens.ts';
import { AppError } from '../../contract/errors.ts';
import { maxFileSeconds } from '../../contract/batch-terms.ts';
import { retryThroughOutage } from '../../platform/redis/retry-through-outage.ts';
import { runInBackground } from '../../platform/runtime/run-in-background.ts';
import { createApiFileKey } from '../../platform/storage/file-name.ts';
import type { ObjectStore } from '../../platform/storage/object-store.ts';
import type { ObjectUpload } from '../../platform/storage/object-upload.ts';
import type { Config } from '../../platform/config/config.ts';
import type { Logger } from '../../platform/runtime/logger.ts';
import { createFileId, parseFileId } from './file-id.ts';
import type { FileRecord, FileSegment } from './file-record.ts';
import type { FileBounds, FileRefusal, FileStore, NewFile } from './file-store.ts';
import type { FileVerdict } from './file-verdict.ts';
import { JsonlChecker } from './jsonl-checker.ts';

/** A batch may read its input for this long after the file has expired. */
const batchMs = 24 * 60 * 60 * 1_000;
/** For how long the deletion of a file that may exist is retried while Redis is unavailable. */
const deletionMs = 10 * 60_000;

export interface FileWriterDeps {
  readonly files: FileStore;
  readonly objects: Pick<ObjectStore, 'openUpload'>;
  /** The limits of files. */
  readonly config: Pick<Config, 'files'>;
  readonly log: Logger;
}

/** The file that was written, and its object. */
export interface WrittenFile {
  readonly file: FileRecord & { readonly verdict: FileVerdict };
  readonly segment: FileSegment;
}

/** Writes the input of a batch as it arrives, and checks its lines on the way. Nothing is kept unless `end` succeeds. */
export class FileWriter {
  readonly #deps: FileWriterDeps;
  readonly #accountId: string;
  readonly #signal: AbortSignal;
  readonly #checker: JsonlChecker;
  readonly #bounds: FileBounds;
  #opened: { readonly key: string; readonly upload: ObjectUpload; readonly createdAtMs: number } | null =
    null;
  #byteLength = 0;

  /** @param signal aborted when the file is no longer wanted; the caller must still call `abort` */
  constructor(deps: FileWriterDeps, accountId: string, signal: AbortSignal) {
    this.#deps = deps;
    this.#accountId = accountId;
    this.#signal = signal;
    const { maxFiles, maxBytes, maxLines } = deps.config.files;
    this.#bounds = { maxFiles, maxBytes };
    this.#checker = new JsonlChecker({
      maxLines,
      turn: new CountingTurn(() => signal.throwIfAborted(), accountId),
    });
  }

  /**
   * Checks whether the account may have another file.
   * @param minBytes that the file has at least
   * @throws AppError `payload_too_large`, `service_unavailable`
   */
  async begin(minBytes: number): Promise<void> {
    const { files, objects } = this.#deps;
    // The lifetime is known only after the content. No file outlives the bucket's rule, which counts from now.
    const key = createApiFileKey(Date.now() + maxFileSeconds * 1_000 + batchMs);
    const begun = await files.begin(this.#accountId, key, minBytes, this.#bounds);
    if (begun.outcome !== 'ok') throw tooManyFiles(begun, this.#bounds);
    const upload = objects.openUpload(key, 'application/jsonl', { signal: this.#signal });
    this.#opened = { key, upload, createdAtMs: begun.nowMs };
  }

  /** @throws AppError `payload_too_large`, `service_unavailable`; the signal's reason */
  async write(piece: Buffer): Promise<void> {
    const { maxFileBytes } = this.#deps.config.files;
    this.#byteLength += piece.length;
    if (this.#byteLength > maxFileBytes) throw fileTooLarge(maxFileBytes);
    await this.#checker.push(piece);
    await this.#store(() => this.#opened!.upload.write(piece));
  }

  /** Creates the file. @throws AppError `payload_too_large`, `service_unavailable`; the signal's reason */
  async end(name: string, lifetimeSeconds: number): Promise<WrittenFile> {
    const { key, upload, createdAtMs } = this.#opened!;
    const verdict = await this.#checker.end();
    const { byteLength } = await this.#store(() => upload.complete());
    const id = createFileId(createdAtMs, lifetimeSeconds);
    const file = { id, name, purpose: 'batch', byteLength, verdict } as const;
    await this.#create({ ...file, key });
    return {
      file: { ...file, ...parseFileId(id)!, modifiedAtMs: createdAtMs, isGrowing: false },
      segment: { key, byteLength },
    };
  }

  async #create(file: NewFile): Promise<void> {
    const { files, log } = this.#deps;
    try {
      const created = await files.create(this.#accountId, file, this.#bounds);
      if (created.outcome !== 'ok') throw tooManyFiles(created, this.#bounds);
    } catch (error) {
      // Whether the file exists is not known if Redis did not reply. If it does not, its object is deleted after a day.
      if (!(error instanceof AppError) || error.status >= 500)
        runInBackground(deleteUnused(this.#deps.files, this.#accountId, file.id), 'deleting a file', log);
      throw error;
    }
  }

  /** Removes what is stored of a file that was not created. */
  async abort(): Promise<void> {
    await this.#opened?.upload.abort();
  }

  /** Runs a call of the object store. @throws AppError `service_unavailable` if it fails; the signal's reason */
  async #store<T>(run: () => T | Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      this.#signal.throwIfAborted();
      throw new AppError('service_unavailable', { cause: error });
    }
  }
}

/** Deletes a file that nobody was told of, if it exists. Retries during an outage. */
export async function deleteUnused(
  files: Pick<FileStore, 'delete'>,
  accountId: string,
  id: string,
): Promise<void> {
  const untilMs = performance.now() + deletionMs;
  await retryThroughOutage(() => files.delete(accountId, id), {
    isOutage: (error) => error instanceof AppError && performance.now() < untilMs,
  });
}

const formatBytes = (bytes: number): string => `${(bytes / 1_000_000).toLocaleString('en-US')} MB`;

export const fileTooLarge = (maxFileBytes: number): AppError =>
  new AppError('payload_too_large', {
    message: `The file is larger than ${formatBytes(maxFileBytes)}, the limit of a file. Split it into several files.`,
  });

function tooManyFiles(
  { outcome, files, byteLength }: FileRefusal,
  { maxFiles, maxBytes }: FileBounds,
): AppError {
  const bound = outcome === 'too_many_files' ? `${maxFiles} files` : `${formatBytes(maxBytes)} of files`;
  return new AppError('payload_too_large', {
    message:
      `An account can have ${bound}, and this one has ${files} files of ${formatBytes(byteLength)}. ` +
      'Delete files that you no longer need.',
  });
}
