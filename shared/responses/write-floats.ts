// decision 0021
import { writeDecimal } from './write-decimal.ts';

/**
 * Writes float32 values as JSON numbers directly into bytes. JSON.stringify writes only doubles, and writes a float32
 * with up to 17 digits. The extra digits take half of the time and a third of the response, and are lost when the
 * client rounds back to float32.
 *
 * Consider a number x in a binade whose neighbours are an `ulp` apart. It is written as n / 10^places, where `places`,
 * the number of decimal places, is the smallest for which 10^-places is at most an ulp, so that the rounded value is
 * nearer to x than to any other float32. n is below 10^9. The relative errors of the product and the parser are at most
 * 2^-52; the rounding leaves a margin of more than 2^-33. If the number with one digit fewer is still within half an
 * ulp, the last digit is omitted, and so are trailing zeros. If even more digits could be omitted, they are zeros in
 * the shortened number, because that is the nearest number of its length.
 */

/** `-123456789000000000000,`: nine digits, padded with zeros up to 10^21, above which an exponent is used. */
export const maxBytesPerFloat = 23;

/**
 * A power of two is only half as far from its lower neighbour, so each binade has a second row for its first number.
 */
const firstOfBinade = 256;
const placesOf = new Int8Array(2 * firstOfBinade);
const scaleOf = new Float64Array(2 * firstOfBinade);
/**
 * Maximum distance of x · 10^(places - 1) from an integer at which that integer, which has one digit fewer, is written.
 */
const maxDistanceOf = new Float64Array(2 * firstOfBinade);

/** Slightly less than half the distance to a neighbour. Excludes ties and errors of the product. */
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
  maxDistanceOf[row] = almostHalf * distance * Number(`1e${places - 1}`);
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

/**
 * The exponents of numbers from 2^-19 to 1, which are most values of embeddings. 2^-19 starts the first binade that
 * lies entirely above 10^-6; JavaScript formats smaller numbers with an exponent.
 */
const minPlainExponent = 127 - 19;
const plainExponents = 19;

/**
 * Writes numbers separated by commas. Parsed and rounded to float32, they are identical to the bit. Each is formatted
 * as JavaScript formats the parsed number, except -0, which keeps its sign. Workers reject values that are not finite;
 * here they become `null`, as in JSON.stringify, because a response that has started can no longer fail.
 * @param vector float32, little-endian
 * @param at start offset; `maxBytesPerFloat` bytes for each number must be free from there
 * @returns the offset of the next byte
 */
export function writeFloats(vector: Uint8Array, target: DataView, at: number): number {
  const source = new DataView(vector.buffer, vector.byteOffset, vector.byteLength);
  const length = vector.byteLength;
  let end = at | 0;
  // Math.imul and `| 0` keep everything in 32-bit integers. The number of digits is chosen without a branch, because a
  // branch would be mispredicted every other time. Each of these two measures accounts for half of the speed.
  for (let from = 0; from < length; from += 4) {
    const bits = source.getInt32(from, true);
    const exponent = (bits >>> 23) & 0xff;
    const row = (bits & 0x7f_ffff) === 0 ? exponent + firstOfBinade : exponent;
    const scaled = Math.abs(source.getFloat32(from, true)) * scaleOf[row]!;
    const shorter = (scaled * 0.1 + 0.5) | 0;
    const cut = Number(Math.abs(shorter - scaled * 0.1) < maxDistanceOf[row]!) | 0;
    const full = (scaled + 0.5) | 0;
    const digits = (full + Math.imul(Math.imul(shorter, 10) - full, cut)) | 0;

    target.setUint8(end, minus);
    end = (end + (bits >>> 31)) | 0;
    if ((exponent - minPlainExponent) >>> 0 >= plainExponents) {
      if (exponent === infiniteExponent) {
        end = (end - (bits >>> 31)) | 0;
        target.setInt32(end, wordNull, true);
        end = (end + 4) | 0;
      } else {
        end = writeDecimal(target, end, digits, placesOf[row]!);
      }
    } else {
      // Writes nine digits, so that the last one is at the last decimal place. There are 8 to 14 decimal places, so the
      // first of the nine digits may be the zero before the point.
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
