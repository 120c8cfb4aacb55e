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

/** An hour of silence at 8 kbit a second, 24 kHz. */
const hourOfMp3 = makeMp3(150_000, [0xf3, 0x14], 24);

/** @param format 0x55 for MP3 */
function wrapInWav(audio: Buffer, format: number, rate: number, extension = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(36);
  head.write('RIFF    WAVEfmt ', 'latin1');
  head.writeUInt32LE(16 + extension.length, 16);
  head.writeUInt16LE(format, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate, 28);
  head.writeUInt16LE(1, 32);
  const data = Buffer.alloc(8);
  data.write('data', 'latin1');
  data.writeUInt32LE(audio.length, 4);
  return Buffer.concat([head, extension, data, audio]);
}

/** @param log2Rate samples a second, as a power of two */
function makeCommonChunk(form: string, log2Rate: number): Buffer {
  const chunk = Buffer.alloc(30);
  chunk.write('COMM', 'latin1');
  chunk.writeUInt32BE(22, 4);
  chunk.writeUInt16BE(1, 8);
  chunk.writeUInt16BE(16, 14);
  chunk.writeUInt16BE(16_383 + log2Rate, 16);
  chunk.writeUInt32BE(2 ** 31, 18);
  chunk.write(form, 26, 'latin1');
  return chunk;
}

function makeAiff(audio: Buffer, commons: readonly Buffer[], kind = 'AIFC'): Buffer {
  const sound = Buffer.alloc(16);
  sound.write('SSND', 'latin1');
  sound.writeUInt32BE(8 + audio.length, 4);
  return Buffer.concat([Buffer.from(`FORM    ${kind}`), ...commons, sound, audio]);
}

test('an AIFF is as long as its rate says', (t) => {
  const hour = Buffer.alloc(1_024 * 2 * 3_600);
  t.is(Math.round(measureSound(makeAiff(hour, [makeCommonChunk('', 10)], 'AIFF'), most)), 3_600);
  t.is(Math.round(measureSound(makeAiff(hour, [makeCommonChunk('sowt', 10)]), most)), 3_600);
});

test('what is packed in a WAV or an AIFF is as long as it says itself, whatever the head says', (t) => {
  for (const rate of [24_000, 192_000, 4_000_000_000]) {
    t.true(measureSound(wrapInWav(hourOfMp3, 0x55, rate), most) >= 3_599, `${rate}`);
  }
  // As the form that names the form further on.
  const extension = Buffer.alloc(24);
  extension.writeUInt16LE(22, 0);
  extension.writeUInt16LE(0x55, 8);
  t.true(measureSound(wrapInWav(hourOfMp3, 0xff_fe, 4_000_000_000, extension), most) >= 3_599);
  t.true(measureSound(makeAiff(hourOfMp3, [makeCommonChunk('.mp3', 31)]), most) >= 3_599);
  // A form that is not known here is no shorter than any other file of so many bytes.
  t.true(measureSound(wrapInWav(Buffer.alloc(40_000, 1), 0x1_61, 4_000_000_000), most) >= 10);
});

test('samples are no longer than they can be, whatever the head says of their bits', (t) => {
  const hour = Buffer.alloc(8_192 * 3_600);
  for (const format of [6, 7]) {
    const wav = wrapInWav(hour, format, 8_192);
    // What the head says of bytes a second, of bytes a sample, and of bits.
    wav.writeUInt32LE(4_000_000_000, 28);
    wav.writeUInt16LE(65_535, 32);
    wav.writeUInt16LE(65_535, 34);
    t.is(Math.round(measureSound(wav, most)), 3_600);
  }
  t.is(Math.round(measureSound(makeAiff(hour, [makeCommonChunk('ulaw', 13)]), most)), 3_600);
});

test('of several heads of an AIFF the one that makes it longest counts', (t) => {
  const heads = [makeCommonChunk('sowt', 31), makeCommonChunk('sowt', 12)];
  t.is(Math.round(measureSound(makeAiff(Buffer.alloc(8_192 * 60), heads), most)), 60);
});

test('an AAC is as long as its frames, also behind a frame of an MP3 or something else', (t) => {
  // 7 bytes of head and 3 of sound, 1024 samples at 8 kHz.
  const aac = makeMp3(10_000, [0xf1, 0x6c], 10);
  t.is(Math.round(measureSound(aac, most)), 1_280);
  t.true(measureSound(Buffer.concat([makeMp3(1, [0xf3, 0x14], 24), aac]), most) >= 1_279);
  t.true(measureSound(Buffer.concat([Buffer.from('x'), hourOfMp3]), most) >= 3_599);
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
