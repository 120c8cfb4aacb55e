// decision 0029
import { LeveledProcesses, type LevelBounds } from '../../platform/child-processes/leveled-processes.ts';
import { AppError } from '../../contract/errors.ts';
import type { Logger } from '../../platform/runtime/logger.ts';
import type { FileResult, FileReply, FileRequest } from './file-content.ts';

/** A thousand pages of plain text take a second or two, and more on a busy machine. */
const levels: readonly LevelBounds[] = [
  { processes: 2, maxRunMs: 2_000, maxUsedMs: 5_000 },
  { processes: 1, maxRunMs: 6_000, maxUsedMs: 20_000 },
  { processes: 1, maxRunMs: Infinity, maxUsedMs: Infinity },
];
/** Time limit for one file, in its last attempt. */
const defaultTimeoutMs = 30_000;
/** A caller that waits longer for a slot of a level gets an error and may retry. */
const defaultWaitMs = 60_000;
/** WebAssembly memory never shrinks, so a process that grew beyond this is not reused. */
const maxReusableBytes = 128 * 1024 * 1024;

/** Starting this takes half a second including the vocabulary; an idle process holds some 150 MB. */
const program = {
  name: 'file process',
  url: new URL('./file-process.js', import.meta.url),
  /** The vocabularies of all tokenizers take 150 MB of it. */
  maxHeapMb: 384,
} as const;

/** Reads and tokenizes callers' files in separate processes, with limits on time and memory. Accounts take turns. */
export class DocumentReader {
  readonly #processes: LeveledProcesses<FileRequest, FileReply>;
  readonly #waitMs: number;

  constructor(log: Pick<Logger, 'error'>, timeoutMs = defaultTimeoutMs, waitMs = defaultWaitMs) {
    this.#waitMs = waitMs;
    const isReusable = ({ memoryBytes }: FileReply): boolean => memoryBytes <= maxReusableBytes;
    this.#processes = new LeveledProcesses(levels, { program, timeoutMs, isReusable, log });
  }

  /** @throws AppError `queue_full` if no process becomes free in time; the signal's reason */
  async read(accountId: string, request: FileRequest, signal: AbortSignal): Promise<FileResult> {
    const limits = { signal, waitMs: this.#waitMs, createError: tooManyFiles };
    const end = await this.#processes.run(accountId, request, limits);
    return end.kind === 'reply' ? end.reply.answer : { fault: 'too_large' };
  }

  async close(): Promise<void> {
    await this.#processes.close();
  }
}

const tooManyFiles = (): AppError =>
  new AppError('queue_full', {
    message:
      'Too many of your files are being read. Wait for the requests in progress to finish, and try again.',
  });
