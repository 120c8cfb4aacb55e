// decision 0068
/** Per image; the frames of an animation count together. */
export const maxPixels = 50_000_000;
/** Frames have a cost beyond their pixels: a file of a few megabytes can contain a million one-pixel frames. */
export const maxFrames = 1_000;
/**
 * Chunks, segments or blocks of a file. Encoders write at least some hundred bytes into each; decoders may keep a list
 * of them.
 */
export const maxParts = 100_000;
/** Of a GIF. Encoders fill them with up to 255 bytes. */
export const maxSubBlocks = 1_000_000;
/** Scans of a JPEG, each of which passes over all pixels. Encoders write about ten. libvips has the same limit. */
export const maxScans = 100;

export interface ImageProblem {
  /** Worded to follow "the image". */
  readonly problem: string;
}

export const unknownImageType: ImageProblem = { problem: 'is not a PNG, JPEG, WebP or GIF' };
/** Replaces the decoder's messages, which describe its internals and tell a caller nothing more than this. */
export const undecodable: ImageProblem = { problem: 'cannot be decoded: it is damaged or cut off' };
export const tooManyPixels: ImageProblem = { problem: `has more than ${maxPixels / 1e6} million pixels` };
export const tooManyFrames: ImageProblem = { problem: `has more than ${maxFrames} frames` };
export const tooManyParts: ImageProblem = {
  problem: `has more than ${maxParts} chunks, segments or blocks. Save it again with another program`,
};
export const tooManySubBlocks: ImageProblem = {
  problem: `has more than ${maxSubBlocks / 1e6} million blocks of data. Save it again with another program`,
};
export const tooManyScans: ImageProblem = {
  problem: `has more than ${maxScans} scans. Save it again with another program`,
};
export const tooSlow: ImageProblem = {
  problem: 'took too long to decode. Send it with fewer pixels, or as a JPEG',
};
export const crashedDecoder: ImageProblem = {
  problem:
    'could not be decoded: the decoder failed or ran out of memory. Send it with fewer pixels, or as a JPEG',
};
