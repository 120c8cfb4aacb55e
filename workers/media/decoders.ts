import type sharp from 'sharp';
import { AppError } from '../../shared/contract/errors.ts';
import { FairBudget } from '../../shared/fairness/fair-budget.ts';

/** Per image; the frames of an animation count together. */
export const maxPixels = 50_000_000;
/** Frames have a cost beyond their pixels: a file of a few megabytes can contain a million one-pixel frames. */
export const maxFrames = 1_000;
/** Only a crafted file takes a decoder longer. */
export const maxDecodeSeconds = 10;
/** An interlaced image of the maximum size takes 400 MB for a second, and small machines have two cores. */
const maxDecodes = 2;

export interface ImageProblem {
  /** Worded to follow "the image". */
  readonly problem: string;
}

export const unknownImageType: ImageProblem = { problem: 'is not a PNG, JPEG, WebP or GIF' };
/** Replaces the decoder's messages, which describe its internals and tell a caller nothing more than this. */
export const undecodable: ImageProblem = { problem: 'cannot be decoded: it is damaged or cut off' };

/**
 * Some cameras write JPEGs that cause decoder warnings although every program can display them. So only truncated or
 * unreadable images are rejected. Colour profiles are ignored, because they are a kind of program.
 */
export const decodeOptions = { failOn: 'error', ignoreIcc: true } as const;

/** The decoders of one process. Accounts take turns, and one account never holds all of them. */
export class Decoders {
  readonly #slots = new FairBudget({ capacity: maxDecodes, maxWaitingPerHolder: Infinity });

  /**
   * Runs work with sharp once a decoder is free.
   * @throws AppError `deadline_exceeded` if none is free in time; the signal's reason when it is aborted
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

/** Loads sharp on first use: api processes and most workers never need it. */
async function loadSharp(): Promise<Sharp> {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  return sharp;
}

/**
 * Reads only the header, so the cost does not depend on the number of pixels that it claims.
 * @param format the format that the first bytes indicate
 * @param countsFrames whether to count the pixels of all frames, or only those of the first
 * @throws sharp's error if the header cannot be read
 */
export async function inspectHead(
  sharp: Sharp,
  bytes: Buffer,
  { format, countsFrames }: { format: string; countsFrames: boolean },
): Promise<{ readonly pixels: number } | ImageProblem> {
  const head = await sharp(bytes, { ...decodeOptions, limitInputPixels: false }).metadata();
  if (`image/${head.format}` !== format) return { problem: 'is not of the format that its first bytes name' };
  const { width, height, pages = 1 } = head;
  const pixels = width * height * (countsFrames ? pages : 1);
  if (pixels > maxPixels) return { problem: `has more than ${maxPixels / 1e6} million pixels` };
  if (pages > maxFrames) return { problem: `has more than ${maxFrames} frames` };
  return { pixels };
}
