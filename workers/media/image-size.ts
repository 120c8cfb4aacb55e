import type { ImageProblem } from './image-limits.ts';

/** What an image's file says about its size. */
export interface ImageSize {
  /** Of the area that all frames are drawn on. */
  readonly width: number;
  readonly height: number;
  /** 1 for an image that is not animated. */
  readonly frames: number;
}

/**
 * Reads the size from the structure of a file, without decoding anything. Takes time in proportion to the bytes at most.
 * Trusts no length in the file: one that leads beyond the end ends the reading, and the decoder finds the file damaged.
 */
export type SizeReader = (bytes: Buffer) => ImageSize | ImageProblem;
