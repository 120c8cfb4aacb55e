import { writeDecimal } from './write-decimal.ts';

/**
 * Float32 as JSON numbers, straight into bytes. JSON.stringify has doubles alone to write: the 17 digits that a float32
 * needs as one of those are half of its time and a third of the answer, and mean nothing to who rounds back to float32.
 *
 * A number x of a binade, whose neighbours are an `ulp` apart, is n / 10^places: `places` is the fewest with which
 * 10^-places is at most an ulp, so that what is rounded to it stays nearer to x than to any other float32. n is below
 * 10^9; the product and the parser err by 2^-52 of x, the room left beside the rounding is more than 2^-33 of it.
 * Where one digit fewer is still within half an ulp it is left out, and so are zeros at the end. If more digits can go,
 * the shorter number has zeros there, for it is then the nearest of its kind.
 */

/** `-123456789000000000000,`: nine digits and zeros up to 10^21, from where on there is an exponent. */
export const maxBytesPerFloat = 23;

/** A power of two has its lower neighbour at half the distance, so each binade has a second row for its first number. */
const firstOfBinade = 256;
const placesOf = new Int8Array(2 * firstOfBinade);
const scaleOf = new Float64Array(2 * firstOfBinade);
/** How far x · 10^(places - 1) may be from a whole number that is to be written in its place. */
const reachOf = new Float64Array(2 * firstOfBinade);

/** Comparing with a hair less than half of the distance to a neighbour leaves ties, and errors of the product, out. */
const almostHalf = 0.5 - 2 ** -20;

const infiniteExponent = 255;
for (let exponent = 0; exponent < infiniteExponent; exponent++) {
  const ulp = 2 ** (Math.max(exponent, 1) - 150);
  const places = Math.ceil(-Math.log10(ulp));
  setRow(exponent, places, ulp);
  setRow(exponent + firstOfBinade, places + 1, ulp / 2);
}

function setRow(row: number, places: number, distance: number): void {
  placesOf[row] = places;
  scaleOf[row] = Number(`1e${places}`);
  reachOf[row] = almostHalf * distance * Number(`1e${places - 1}`);
}

/** The ASCII of 0000 to 9999, little-endian. */
const fourDigits = new Int32Array(10_000);
for (let number = 0; number < fourDigits.length; number++) {
  fourDigits[number] = Buffer.from(String(number).padStart(4, '0')).readInt32LE();
}
const fourZeros = fourDigits[0]!;

const wordNull = Buffer.from('null').readInt32LE();

const zero = 0x30;
const comma = 0x2c;
const point = 0x2e;
const minus = 0x2d;

/** From 2^-19, the first binade that is all above the 10^-6 where exponents end, to 1: most of what embeddings hold. */
const leastPlainExponent = 127 - 19;
const plainExponents = 19;

/**
 * Writes numbers with commas between them. Parsed and rounded to float32 they are the same to the bit; each looks as
 * JavaScript writes what it is parsed to, but for -0, which keeps its sign. Workers let nothing pass that is not finite;
 * here it is `null`, as JSON.stringify has it, since an answer that has begun cannot be refused.
 * @param vector float32, little-endian
 * @param at where to begin; `maxBytesPerFloat` for each number must be free from there
 * @returns where the next byte goes
 */
export function writeFloats(vector: Uint8Array, target: DataView, at: number): number {
  const source = new DataView(vector.buffer, vector.byteOffset, vector.byteLength);
  const length = vector.byteLength;
  let end = at | 0;
  // Math.imul and `| 0` keep all of this in whole numbers of 32 bits, and the choice of length is no branch, which
  // would be guessed wrong every other time: each of the two is half of the speed.
  for (let from = 0; from < length; from += 4) {
    const bits = source.getInt32(from, true);
    const exponent = (bits >>> 23) & 0xff;
    const row = (bits & 0x7f_ffff) === 0 ? exponent + firstOfBinade : exponent;
    const scaled = Math.abs(source.getFloat32(from, true)) * scaleOf[row]!;
    const shorter = (scaled * 0.1 + 0.5) | 0;
    const cut = Number(Math.abs(shorter - scaled * 0.1) < reachOf[row]!) | 0;
    const full = (scaled + 0.5) | 0;
    const digits = (full + Math.imul(Math.imul(shorter, 10) - full, cut)) | 0;

    target.setUint8(end, minus);
    end = (end + (bits >>> 31)) | 0;
    if ((exponent - leastPlainExponent) >>> 0 >= plainExponents) {
      if (exponent === infiniteExponent) {
        end = (end - (bits >>> 31)) | 0;
        target.setInt32(end, wordNull, true);
        end = (end + 4) | 0;
      } else {
        end = writeDecimal(target, end, digits, placesOf[row]!);
      }
    } else {
      // Nine digits that end where the places do. There are 8 to 14 places: the first digit may be the whole's zero.
      const first = (end + placesOf[row]! - 7) | 0;
      target.setInt32(end, fourZeros, true);
      target.setInt32(end + 3, fourZeros, true);
      const upper = (digits / 10_000) | 0;
      const top = (upper / 10_000) | 0;
      target.setUint8(first, zero + top);
      target.setInt32(first + 1, fourDigits[upper - Math.imul(top, 10_000)]!, true);
      target.setInt32(first + 5, fourDigits[digits - Math.imul(upper, 10_000)]!, true);
      target.setUint8(end + 1, point);
      end = (first + 9 - cut) | 0;
      while (target.getUint8(end - 1) === zero) end = (end - 1) | 0;
    }
    target.setUint8(end, comma);
    end = (end + 1) | 0;
  }
  return length === 0 ? end : end - 1;
}
