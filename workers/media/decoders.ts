import type sharp from 'sharp';
import { AppError } from '../../shared/contract/errors.ts';
import { FairBudget } from '../../shared/fairness/fair-budget.ts';

/** Of one image; an animation's frames count together. */
export const maxPixels = 50_000_000;
/** Each frame costs more than its pixels: a file of a few megabytes can hold a million of one pixel. */
export const maxFrames = 1_000;
/** A decoder that is at it for so long is being led by the nose. */
export const maxDecodeSeconds = 10;
/** An interlaced image of the most pixels takes 400 MB for a second; there are two cores on a small machine. */
const maxDecodes = 2;

/** What is wrong with bytes that should be an image, to be read after "an image". */
export interface ImageFault {
  readonly fault: string;
}

export const unknownImageType: ImageFault = { fault: 'is not a PNG, JPEG, WebP or GIF' };
/** Whatever the decoder's words are, they speak of its insides; to a caller they all mean this. */
export const undecodable: ImageFault = { fault: 'cannot be decoded: it is damaged or cut off' };

/**
 * Cameras write JPEGs that make the decoder warn and that everybody shows: only what ends too early, or cannot be read at
 * all, is refused. Colour profiles are left alone, for they are programs of a kind.
 */
export const decodeOptions = { failOn: 'error', ignoreIcc: true } as const;

/** The decoders of one process. Accounts take turns, and one alone never has all of them. */
export class Decoders {
  readonly #slots = new FairBudget({ capacity: maxDecodes, maxWaitingPerHolder: Infinity });

  /**
   * Runs some work with sharp, once there is a decoder for it.
   * @throws AppError `deadline_exceeded` where none is free in time; the signal's reason
   */
  async use<T>(
    { accountId, signal, waitMs }: { accountId: string; signal: AbortSignal; waitMs: number },
    work: (sharp: Sharp) => Promise<T>,
  ): Promise<T> {
    const refuse = (): AppError => new AppError('deadline_exceeded');
    const slot = await this.#slots.acquire(accountId, 1, { signal, waitMs, refuse });
    try {
      return await work(await loadSharp());
    } finally {
      slot.release();
    }
  }
}

export type Sharp = typeof sharp;

/** Loaded when it is first needed: api processes and most workers never are. */
async function loadSharp(): Promise<Sharp> {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  return sharp;
}

/**
 * Reads no further than the head, whatever number of pixels that promises.
 * @param format what the first bytes say
 * @param countsFrames whether the pixels of all frames are decoded, and not of the first alone
 * @throws what sharp throws where it cannot be read
 */
export async function inspectHead(
  sharp: Sharp,
  bytes: Buffer,
  { format, countsFrames }: { format: string; countsFrames: boolean },
): Promise<{ readonly pixels: number } | ImageFault> {
  const head = await sharp(bytes, { ...decodeOptions, limitInputPixels: false }).metadata();
  if (`image/${head.format}` !== format) return { fault: 'is not of the format that its first bytes name' };
  const { width, height, pages = 1 } = head;
  const pixels = width * height * (countsFrames ? pages : 1);
  if (pixels > maxPixels) return { fault: `has more than ${maxPixels / 1e6} million pixels` };
  if (pages > maxFrames) return { fault: `has more than ${maxFrames} frames` };
  return { pixels };
}
