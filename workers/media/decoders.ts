// decision 0048
import {
  LeveledProcesses,
  type LevelBounds,
  type LevelOptions,
} from '../../shared/platform/child-processes/leveled-processes.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { crashedDecoder, tooSlow, undecodable, type ImageProblem } from './image-limits.ts';
import type { ImageReply, ImageWork, WorkResult } from './image-work.ts';

/**
 * Images of callers. Most take well under a second. A JPEG of 49 megapixels takes two seconds, a WebP up to ten, and
 * several times as long on a busy machine.
 */
const inputLevels: readonly LevelBounds[] = [
  { processes: 2, maxRunMs: 2_000, maxUsedMs: 5_000 },
  { processes: 1, maxRunMs: 8_000, maxUsedMs: 20_000 },
  { processes: 1, maxRunMs: Infinity, maxUsedMs: Infinity },
];
/** Images of vendors, which callers have ordered and which must not wait for images of callers. */
const outputLevels: readonly LevelBounds[] = [
  { processes: 2, maxRunMs: 2_000, maxUsedMs: 20_000 },
  { processes: 1, maxRunMs: Infinity, maxUsedMs: Infinity },
];
/** Larger images start at the second level: they take longer, and more memory. */
const maxFirstLevelPixels = 16_000_000;
/** Time limit for one image, in its last attempt. */
const defaultTimeoutMs = 45_000;
/** A process that took more memory for an image may not return it. */
const maxReusableBytes = 256 * 1024 * 1024;

const program = {
  name: 'image process',
  url: new URL('./image-process.js', import.meta.url),
  /** Files are outside this heap. */
  maxHeapMb: 128,
  /** The largest images take up to 800 MB, such as an interlaced PNG of 16 bits per channel. */
  maxDataMb: 1_536,
} as const;

/** Where images come from. Each kind has its own processes. */
export type ImageOrigin = 'caller' | 'vendor';

export interface DecodeOptions extends Pick<LevelOptions, 'signal' | 'waitMs'> {
  readonly accountId: string;
  readonly origin: ImageOrigin;
  /** Of the whole file, as read from its bytes. */
  readonly pixels: number;
}

/**
 * The decoders of a worker: processes that are killed if an image takes too long. Accounts take turns, and the time that
 * an account has used counts: those that used much wait for each other, not others for them.
 */
export class Decoders {
  readonly #processes: Readonly<Record<ImageOrigin, LeveledProcesses<ImageWork, ImageReply>>>;

  constructor(log: Pick<Logger, 'error'>, timeoutMs = defaultTimeoutMs) {
    const isReusable = ({ rssBytes }: ImageReply): boolean => rssBytes <= maxReusableBytes;
    const pool = { program, timeoutMs, isReusable, log };
    this.#processes = {
      caller: new LeveledProcesses(inputLevels, pool),
      vendor: new LeveledProcesses(outputLevels, pool),
    };
  }

  /**
   * Performs the work once a process is free.
   * @throws AppError `deadline_exceeded` if none is free in time, `service_unavailable` if none can be started; the
   * signal's reason when it is aborted
   */
  async perform(
    work: ImageWork,
    { accountId, origin, pixels, signal, waitMs }: DecodeOptions,
  ): Promise<WorkResult | ImageProblem> {
    const from = pixels > maxFirstLevelPixels ? 1 : 0;
    const options = { signal, waitMs, createError: noDecoderInTime, maxWaiting: Infinity, from };
    const end = await this.#processes[origin].run(accountId, work, options);
    if (end.kind === 'late') return tooSlow;
    if (end.kind === 'crashed') return crashedDecoder;
    const { result } = end.reply;
    return result === 'undecodable' ? undecodable : result;
  }

  get pids(): number[] {
    return Object.values(this.#processes).flatMap(({ pids }) => pids);
  }

  /** Ends all processes. Call this when no image is being decoded any more. */
  async close(): Promise<void> {
    await Promise.all(Object.values(this.#processes).map((processes) => processes.close()));
  }
}

const noDecoderInTime = (): AppError => new AppError('deadline_exceeded');
