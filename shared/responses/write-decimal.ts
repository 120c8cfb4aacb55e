const zero = 0x30;
const point = 0x2e;
const minus = 0x2d;
const plus = 0x2b;
const exponentMark = 0x65;

const powersOfTen = Int32Array.from({ length: 10 }, (_, power) => 10 ** power);

/**
 * Writes digits / 10^places in JavaScript's number format, without a sign.
 * @param digits an integer from 0 to 10^9 - 1
 * @returns the offset of the next byte
 */
export function writeDecimal(target: DataView, at: number, digits: number, places: number): number {
  if (digits === 0) return writeDigits(target, at, 0, 1);
  let number = digits | 0;
  let scale = places | 0;
  for (let next = (number / 10) | 0; Math.imul(next, 10) === number; next = (number / 10) | 0) {
    number = next;
    scale = (scale - 1) | 0;
  }
  const length = countDigits(number);
  /** Position of the decimal point, counted from the first digit. */
  const whole = length - scale;
  if (whole > 21 || whole < -5) {
    const end = writeMixed(target, at, number, length, 1);
    const exponent = whole - 1;
    target.setUint8(end, exponentMark);
    target.setUint8(end + 1, exponent < 0 ? minus : plus);
    return writeDigits(target, end + 2, Math.abs(exponent), Math.abs(exponent) < 10 ? 1 : 2);
  }
  if (whole >= length) {
    const end = writeDigits(target, at, number, length);
    return writeZeros(target, end, whole - length);
  }
  if (whole > 0) return writeMixed(target, at, number, length, whole);
  target.setUint8(at, zero);
  target.setUint8(at + 1, point);
  return writeDigits(target, writeZeros(target, at + 2, -whole), number, length);
}

/** Writes digits, with a decimal point after the first `whole` of them if there are more. */
function writeMixed(target: DataView, at: number, number: number, length: number, whole: number): number {
  if (length === whole) return writeDigits(target, at, number, length);
  const unit = powersOfTen[length - whole]!;
  const head = (number / unit) | 0;
  const end = writeDigits(target, at, head, whole);
  target.setUint8(end, point);
  return writeDigits(target, end + 1, number - Math.imul(head, unit), length - whole);
}

function writeDigits(target: DataView, at: number, number: number, length: number): number {
  let remaining = number | 0;
  for (let offset = at + length - 1; offset >= at; offset--) {
    const next = (remaining / 10) | 0;
    target.setUint8(offset, zero + remaining - Math.imul(next, 10));
    remaining = next;
  }
  return at + length;
}

function writeZeros(target: DataView, at: number, count: number): number {
  for (let offset = at; offset < at + count; offset++) target.setUint8(offset, zero);
  return at + count;
}

function countDigits(number: number): number {
  let length = 1;
  while (length < 10 && number >= powersOfTen[length]!) length++;
  return length;
}
