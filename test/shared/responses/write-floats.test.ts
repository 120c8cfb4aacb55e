import test from 'ava';
import fc from 'fast-check';
import { maxBytesPerFloat, writeFloats } from '../../../shared/responses/write-floats.ts';

const infinityBits = 0x7f80_0000;
const isFinite = (bits: number): boolean => (bits & infinityBits) !== infinityBits;

/** The bit patterns of float32 numbers as little-endian bytes, at an odd memory address. */
function toVector(bits: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(1 + bits.length * 4).subarray(1);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  for (const [i, word] of bits.entries()) view.setUint32(i * 4, word, true);
  return bytes;
}

const toBits = (number: number): number => new Uint32Array(Float32Array.of(number).buffer)[0]!;

/** @throws if a byte outside the reserved range was written */
function write(vector: Uint8Array): string {
  const margin = '#####';
  const reserved = (vector.length / 4) * maxBytesPerFloat;
  const target = Buffer.alloc(reserved + 2 * margin.length, '#');
  const end = writeFloats(
    vector,
    new DataView(target.buffer, target.byteOffset, target.length),
    margin.length,
  );
  const around =
    target.toString('latin1', 0, margin.length) + target.toString('latin1', margin.length + reserved);
  if (around !== margin + margin) throw new Error(`bytes were written outside the reserved range: ${around}`);
  return target.toString('latin1', margin.length, end);
}

const writeOne = (number: number): string => write(toVector([toBits(number)]));

/** Describes what is wrong with the text of numbers, or null. */
function findMismatch(bits: Uint32Array, text: string): string | null {
  const numbers = JSON.parse(`[${text}]`) as number[];
  const back = new Uint32Array(Float32Array.from(numbers).buffer);
  if (back.length !== bits.length) return `${back.length} numbers of ${bits.length}`;
  const wrongIndex = back.findIndex((word, i) => word !== bits[i]);
  if (wrongIndex !== -1)
    return `0x${bits[wrongIndex]!.toString(16)} was read back as 0x${back[wrongIndex]!.toString(16)}`;
  // The form that JavaScript prints has no redundant digit, zero or sign.
  const written = JSON.stringify(numbers.map((number) => (Object.is(number, -0) ? 0 : number)));
  return written === `[${text.replaceAll(/-0(?=,|$)/g, '0')}]` ? null : `${text} is not ${written}`;
}

const anyFloat = fc.nat(2 ** 32 - 1).filter(isFinite);

test('any numbers round-trip exactly, in JavaScript’s own form and within the reserved size', (t) => {
  fc.assert(
    fc.property(fc.array(anyFloat, { maxLength: 20 }), (bits) => {
      const text = write(toVector(bits));
      t.is(findMismatch(Uint32Array.from(bits), text), null);
      const texts = text === '' ? [] : text.split(',');
      t.true(texts.every((one) => one.length < maxBytesPerFloat));
      t.true(
        texts.every(
          (one) =>
            one
              .replace(/e.*/, '')
              .replaceAll(/^-?0?\.?0*|\D/g, '')
              .replace(/0+$/, '').length <= 9,
        ),
      );
    }),
    { numRuns: 500 },
  );
  t.pass();
});

test('numbers sampled from the whole float32 range round-trip exactly', (t) => {
  // The stride is odd, so samples fall at varying positions between the powers of two: every exponent, many mantissas.
  const stride = 2_003;
  const bits = new Uint32Array(8_192);
  const vector = new Uint8Array(bits.buffer);
  const target = Buffer.alloc(bits.length * maxBytesPerFloat);
  const view = new DataView(target.buffer, target.byteOffset, target.length);
  let count = 0;
  for (let next = 0; next < 2 ** 32;) {
    for (let i = 0; i < bits.length; i++, next += stride)
      bits[i] = isFinite(next) && next < 2 ** 32 ? next : 0;
    const text = target.toString('latin1', 0, writeFloats(vector, view, 0));
    const mismatch = findMismatch(bits, text);
    if (mismatch !== null) {
      t.fail(mismatch);
      return;
    }
    count += bits.length;
  }
  t.true(count > 2_000_000);
});

test('the edges of every binade and the neighbours of every power of ten round-trip exactly', (t) => {
  const words: number[] = [];
  for (let exponent = 0; exponent < 255; exponent++) {
    const first = exponent * 2 ** 23;
    for (const step of [0, 1, 2, 3, 2 ** 22 - 1, 2 ** 22, 2 ** 22 + 1, 2 ** 23 - 2, 2 ** 23 - 1])
      words.push(first + step);
  }
  for (let power = -45; power <= 38; power++) {
    for (let digit = 1; digit < 10; digit++) {
      const nearest = toBits(Number(`${digit}e${power}`));
      for (let step = -3; step <= 3; step++) words.push(Math.max(0, nearest + step));
    }
  }
  const bits = Uint32Array.from(words.filter(isFinite).flatMap((word) => [word, word + 2 ** 31]));
  t.is(findMismatch(bits, write(new Uint8Array(bits.buffer))), null);
});

/**
 * Whether a number may get one digit more than necessary: near the middle of two float32 values, and in the wider gap
 * above a power of two.
 */
function mayGetAnotherDigit(number: number): boolean {
  const fromBits = (bits: number): number => new Float32Array(Uint32Array.of(bits).buffer)[0]!;
  const nearest = Math.fround(Math.abs(number));
  const bits = toBits(nearest);
  const gap = Math.min(fromBits(bits + 1) - nearest, nearest - fromBits(bits - 1));
  return Math.abs(Math.abs(number) - nearest) > (0.5 - 2 ** -19) * gap;
}

test('fractions with up to six digits are written unchanged, except in two rare cases', (t) => {
  fc.assert(
    fc.property(
      fc.integer({ min: -999_999, max: 999_999 }),
      fc.integer({ min: -37, max: -1 }),
      (digits, power) => {
        const number = Number(`${digits}e${power}`);
        fc.pre(digits !== 0 && !mayGetAnotherDigit(number));
        t.is(writeOne(number), String(number));
      },
    ),
    { numRuns: 2_000 },
  );
  t.pass();
});

test('numbers are written in their shortest form', (t) => {
  const expected: [number, string][] = [
    [0, '0'],
    [-0, '-0'],
    [1, '1'],
    [-1, '-1'],
    [0.5, '0.5'],
    [0.1, '0.1'],
    [-0.3, '-0.3'],
    [1 / 3, '0.33333334'],
    [3.14159274, '3.1415927'],
    [0.99999994, '0.99999994'],
    [100, '100'],
    [16_777_216, '16777216'],
    [2 ** -19, '0.0000019073486'],
    [1e-6, '0.000001'],
    [1e-7, '1e-7'],
    [-1.5e-7, '-1.5e-7'],
    [1e20, '100000000000000000000'],
    [1e21, '1e+21'],
    [2 ** -149, '1e-45'],
    [3.4028234663852886e38, '3.4028235e+38'],
    [-1.1754943508222875e-38, '-1.17549435e-38'],
  ];
  for (const [number, text] of expected) t.is(writeOne(number), text);
  t.is(write(new Uint8Array()), '');
});

test('a value that is not a finite number is written as null, so that the output is valid JSON', (t) => {
  const bits = [NaN, Infinity, -Infinity, 0.25].map(toBits);
  t.is(write(toVector([...bits, 0xffff_ffff, infinityBits + 2 ** 31])), 'null,null,null,0.25,null,null');
});
