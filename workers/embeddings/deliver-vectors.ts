import { endianness } from 'node:os';
import { AppError } from '../../shared/contract/errors.ts';
import { UpstreamError, type EmbeddingAnswer } from '../upstreams/upstream.ts';
import type { EmbeddedInput, WorkUnit } from './embedding-work.ts';
import { shareExactly } from './share-exactly.ts';

export interface EmbeddedUnit {
  readonly unit: WorkUnit;
  readonly outcome: EmbeddedInput;
}

/**
 * A vector that is not all finite numbers is no answer, and JSON could not tell it. One of several is the fault of its
 * input, and of nobody else whose inputs went with it; where there is no other, it is the upstream's.
 * @returns the units that have their vector now
 * @throws UpstreamError when no vector is finite; nothing is delivered then
 */
export function deliverVectors(
  units: readonly WorkUnit[],
  answer: EmbeddingAnswer,
  tookMs: number,
): EmbeddedUnit[] {
  const weights = units.map((unit) => unit.tokens);
  const counted = answer.promptTokens === null;
  const tokens = shareExactly(answer.promptTokens ?? weights.reduce((a, b) => a + b, 0), weights);
  const times = shareExactly(tookMs, weights);
  const size = answer.dimensions * 4;
  const vectors = units.map((_, i) => answer.vectors.subarray(i * size, (i + 1) * size));
  const areFinite = vectors.map(isFiniteVector);
  if (!areFinite.includes(true)) {
    throw new UpstreamError('unavailable', 'the upstream sent no vector of finite numbers');
  }
  const embedded: EmbeddedUnit[] = [];
  for (const [i, unit] of units.entries()) {
    if (!areFinite[i]) {
      const message = 'The model gave a vector for an input of this request that is not all finite numbers.';
      unit.deliver({ error: new AppError('upstream_error', { message }) });
      continue;
    }
    const outcome: EmbeddedInput = {
      vector: vectors[i]!,
      dimensions: answer.dimensions,
      tokens: tokens[i]!,
      counted,
      billedMs: times[i]!,
    };
    unit.deliver(outcome);
    embedded.push({ unit, outcome });
  }
  return embedded;
}

/**
 * Whether float32 numbers are all finite: infinities and NaN are those whose exponent has all bits set.
 * @param vector little-endian
 */
function isFiniteVector(vector: Uint8Array): boolean {
  return isLittleEndian && vector.byteOffset % 4 === 0 ? areWordsFinite(vector) : areBytesFinite(vector);
}

const isLittleEndian = endianness() === 'LE';

/** Adding one to an exponent that has all bits set carries into the sign, which is looked at once for all. */
function areWordsFinite({ buffer, byteOffset, length }: Uint8Array): boolean {
  const words = new Int32Array(buffer, byteOffset, length / 4);
  let carried = 0;
  for (let i = 0; i < words.length; i++) carried |= (words[i]! & 0x7f800000) + 0x00800000;
  return carried >= 0;
}

/** Looks at the two bytes of an exponent, so that it matters neither where a vector begins nor how this machine orders bytes. */
function areBytesFinite(vector: Uint8Array): boolean {
  const length = vector.length;
  for (let at = 3; at < length; at += 4) {
    if ((vector[at]! & 0x7f) === 0x7f && vector[at - 1]! >= 0x80) return false;
  }
  return true;
}
