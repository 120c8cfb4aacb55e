import { endianness } from 'node:os';

/** The places of the vectors that are not all finite numbers. */
export function findBroken(vectors: Buffer, dimensions: number): number[] {
  const size = dimensions * 4;
  const count = vectors.length / size;
  const places = Array.from({ length: count }, (_, i) => i);
  return places.filter((i) => !isFiniteVector(vectors.subarray(i * size, (i + 1) * size)));
}

/**
 * Whether float32 numbers are all finite: infinities and NaN are those whose exponent has all bits set. Asked as soon as a
 * vector is written, it costs a third of what it does later, when the processor must fetch it anew.
 * @param vector little-endian
 */
export function isFiniteVector(vector: Uint8Array): boolean {
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
