import { createHash } from 'node:crypto';

import { createRandom } from './faults.ts';

export const DEFAULT_DIMENSIONS = 1536;

/**
 * How vectors are generated. `by-text`: each text gets a different vector. `fast`, for benchmarks: all texts get the
 * same vector, which is computed once per number of dimensions.
 */
export type VectorMode = 'by-text' | 'fast';

export interface VectorSource {
  /** Whether all texts get the same vector. */
  readonly isFast: boolean;
  toBase64(text: string, dimensions: number): string;
  toFloats(text: string, dimensions: number): Float32Array;
}

const MAX_CACHED_BASE64 = 256;

export function createVectorSource(mode: VectorMode): VectorSource {
  const base64Of = new Map<string, string>();

  return {
    isFast: mode === 'fast',
    toBase64(text, dimensions) {
      const seed = mode === 'fast' ? '' : text;
      const cacheKey = `${dimensions} ${seed}`;
      let base64 = base64Of.get(cacheKey);
      if (base64 === undefined) {
        const vector = deriveVector(seed, dimensions);
        base64 = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
        if (base64Of.size >= MAX_CACHED_BASE64) {
          base64Of.clear();
        }
        base64Of.set(cacheKey, base64);
      }
      return base64;
    },
    toFloats: (text, dimensions) => deriveVector(mode === 'fast' ? '' : text, dimensions),
  };
}

/** Returns a unit vector that depends only on the text, so that tests can identify the text of a result. */
export function deriveVector(text: string, dimensions: number): Float32Array {
  const random = createRandom(createHash('sha256').update(text).digest().readUInt32LE(0));
  const vector = Float32Array.from({ length: dimensions }, () => random() * 2 - 1);
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return vector.map((value) => value / length);
}
