import test from 'ava';
import { measureSound } from '../../../api/files/sound-length.ts';

const most = 100_000;

interface WavOptions {
  readonly format?: number;
  readonly channels?: number;
  readonly rate?: number;
  readonly bits?: number;
  /** Where it is not what the others come to. */
  readonly bytesPerSecond?: number;
}

function makeWav(seconds: number, options: WavOptions = {}): Buffer {
  const { format = 1, channels = 1, rate = 8_000, bits = 16 } = options;
  const frameBytes = channels * (bits / 8);
  const data = Buffer.alloc(seconds * rate * frameBytes);
  const head = Buffer.alloc(44);
  head.write('RIFF    WAVEfmt ', 'latin1');
  head.writeUInt32LE(36 + data.length, 4);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(format, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(options.bytesPerSecond ?? rate * frameBytes, 28);
  head.writeUInt16LE(frameBytes, 32);
  head.writeUInt16LE(bits, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(data.length, 40);
  return Buffer.concat([head, data]);
}

test('a WAV is as long as its rates say, however few bytes it takes', (t) => {
  t.is(Math.round(measureSound(makeWav(60), most)), 60);
  t.is(Math.round(measureSound(makeWav(10, { rate: 44_100, channels: 2 }), most)), 10);
  t.is(Math.round(measureSound(makeWav(10, { rate: 48_000, bits: 24, format: 0xff_fe }), most)), 10);
  t.is(Math.round(measureSound(makeWav(3_600, { rate: 100, bits: 8 }), most)), 3_600);
});

test('a WAV whose fields disagree is as long as any of them says', (t) => {
  t.is(
    Math.round(measureSound(makeWav(3_600, { rate: 100, bits: 8, bytesPerSecond: 1_000_000 }), most)),
    3_600,
  );
  t.is(Math.round(measureSound(makeWav(60, { bytesPerSecond: 160 }), most)), 6_000);
});

test('a WAV with more in its head before the rates is read, and one that is cut is no fault', (t) => {
  const wav = makeWav(60);
  const junk = Buffer.alloc(8 + 1_000);
  junk.write('JUNK', 'latin1');
  junk.writeUInt32LE(1_000, 4);
  const padded = Buffer.concat([wav.subarray(0, 12), junk, wav.subarray(12)]);
  t.is(Math.round(measureSound(padded, most)), 60);
  for (let length = 0; length < 60; length += 1) t.true(measureSound(wav.subarray(0, length), most) < 1);
});

test('a WAV of a million chunks is longer than anything', (t) => {
  const wav = makeWav(60);
  const many = Buffer.concat([wav.subarray(0, 12), Buffer.alloc(8_000_000), wav.subarray(12)]);
  t.is(measureSound(many, most), Number.POSITIVE_INFINITY);
});

test('an AIFF is as long as its rate says', (t) => {
  const head = Buffer.alloc(54);
  head.write('FORM    AIFFCOMM', 'latin1');
  head.writeUInt32BE(18, 16);
  head.writeUInt16BE(1, 20);
  head.writeUInt32BE(3_600_000, 22);
  head.writeUInt16BE(8, 26);
  // 1000 a second: 1000 / 512, times two to the ninth.
  head.writeUInt16BE(16_383 + 9, 28);
  head.writeUInt32BE((1_000 / 512) * 2 ** 31, 30);
  t.is(Math.round(measureSound(Buffer.concat([head, Buffer.alloc(3_600_000)]), most)), 3_600);
});

/** Silent frames. @param head the second and third byte of each */
function makeMp3(frames: number, head: readonly [number, number], frameBytes: number): Buffer {
  const frame = Buffer.alloc(frameBytes);
  frame.set([0xff, ...head]);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}

test('an MP3 is as long as its frames are together, at any rate of bits', (t) => {
  // 128 kbit a second at 44.1 kHz; then 8 kbit a second at 24 kHz, of 24 ms and 24 bytes a frame.
  const common = makeMp3(1_000, [0xfb, 0x90], 417);
  t.is(Math.round(measureSound(common, most)), 26);
  t.is(Math.round(measureSound(makeMp3(150_000, [0xf3, 0x14], 24), most)), 3_600);
  const tag = Buffer.alloc(10 + 300);
  tag.write('ID3', 'latin1');
  tag.set([2, 300 - 256], 8);
  t.is(Math.round(measureSound(Buffer.concat([tag, common]), most)), 26);
});

test('frames of an MP3 count that lie where another frame is said to be', (t) => {
  const hidden = Buffer.alloc(1_440 * 100);
  for (let at = 0; at < hidden.length; at += 24) hidden.set([0xff, 0xf3, 0x14], at);
  for (let at = 0; at < hidden.length; at += 1_440) hidden.set([0xff, 0xfb, 0xe0], at);
  t.true(measureSound(hidden, most) > 140);
});

test('a FLAC is as long as its head says', (t) => {
  const head = Buffer.alloc(42);
  head.write('fLaC', 'latin1');
  head.writeUIntBE(8_000 << 4, 18, 3);
  head.writeUInt32BE(8_000 * 3_600, 22);
  t.is(Math.round(measureSound(head, most)), 3_600);
});

test('sound of an unknown form is taken for 32 kbit a second, and no further looked at than needed', (t) => {
  t.is(measureSound(Buffer.alloc(40_000, 1), most), 10);
  t.is(measureSound(Buffer.alloc(0), most), 0);
  const seconds = measureSound(makeMp3(150_000, [0xf3, 0x14], 24), 10);
  t.true(seconds > 10 && seconds < 11);
});
