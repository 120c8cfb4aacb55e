import test from 'ava';
import { measureSound } from '../../../../shared/preparing/documents/sound-length.ts';

const maxSeconds = 100_000;

interface WavOptions {
  readonly format?: number;
  readonly channels?: number;
  readonly rate?: number;
  readonly bits?: number;
  /** Set only if it differs from the value computed from the other fields. */
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

test('the length of a WAV is computed from the rates in its header, even if it has few bytes per second', (t) => {
  t.is(Math.round(measureSound(makeWav(60), maxSeconds)), 60);
  t.is(Math.round(measureSound(makeWav(10, { rate: 44_100, channels: 2 }), maxSeconds)), 10);
  t.is(Math.round(measureSound(makeWav(10, { rate: 48_000, bits: 24, format: 0xff_fe }), maxSeconds)), 10);
  t.is(Math.round(measureSound(makeWav(3_600, { rate: 100, bits: 8 }), maxSeconds)), 3_600);
});

test('if the fields of a WAV disagree, its length is the longest that any of them implies', (t) => {
  t.is(
    Math.round(measureSound(makeWav(3_600, { rate: 100, bits: 8, bytesPerSecond: 1_000_000 }), maxSeconds)),
    3_600,
  );
  t.is(Math.round(measureSound(makeWav(60, { bytesPerSecond: 160 }), maxSeconds)), 6_000);
});

test('a WAV with additional chunks before the format is read, and a truncated one does not fail', (t) => {
  const wav = makeWav(60);
  const junk = Buffer.alloc(8 + 1_000);
  junk.write('JUNK', 'latin1');
  junk.writeUInt32LE(1_000, 4);
  const padded = Buffer.concat([wav.subarray(0, 12), junk, wav.subarray(12)]);
  t.is(Math.round(measureSound(padded, maxSeconds)), 60);
  for (let length = 0; length < 60; length += 1)
    t.true(measureSound(wav.subarray(0, length), maxSeconds) < 1);
});

test('a WAV with a million chunks has infinite length', (t) => {
  const wav = makeWav(60);
  const many = Buffer.concat([wav.subarray(0, 12), Buffer.alloc(8_000_000), wav.subarray(12)]);
  t.is(measureSound(many, maxSeconds), Number.POSITIVE_INFINITY);
});

/** Silent frames. @param head second and third byte of each frame */
function makeMp3(frames: number, head: readonly [number, number], frameBytes: number): Buffer {
  const frame = Buffer.alloc(frameBytes);
  frame.set([0xff, ...head]);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}

test('the length of an MP3 is the sum of its frames, at any bit rate', (t) => {
  // 128 kbit/s at 44.1 kHz here; 8 kbit/s at 24 kHz, with 24 ms and 24 bytes per frame, below.
  const common = makeMp3(1_000, [0xfb, 0x90], 417);
  t.is(Math.round(measureSound(common, maxSeconds)), 26);
  t.is(Math.round(measureSound(makeMp3(150_000, [0xf3, 0x14], 24), maxSeconds)), 3_600);
  const tag = Buffer.alloc(10 + 300);
  tag.write('ID3', 'latin1');
  tag.set([2, 300 - 256], 8);
  t.is(Math.round(measureSound(Buffer.concat([tag, common]), maxSeconds)), 26);
});

test('the length of an MP3 includes frames hidden inside other frames', (t) => {
  const hidden = Buffer.alloc(1_440 * 100);
  for (let at = 0; at < hidden.length; at += 24) hidden.set([0xff, 0xf3, 0x14], at);
  for (let at = 0; at < hidden.length; at += 1_440) hidden.set([0xff, 0xfb, 0xe0], at);
  t.true(measureSound(hidden, maxSeconds) > 140);
});

/** An hour of silence at 8 kbit/s and 24 kHz. */
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

/** @param log2Rate sample rate in Hz, as a power of two */
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

test('the length of an AIFF is computed from its sample rate', (t) => {
  const hour = Buffer.alloc(1_024 * 2 * 3_600);
  t.is(Math.round(measureSound(makeAiff(hour, [makeCommonChunk('', 10)], 'AIFF'), maxSeconds)), 3_600);
  t.is(Math.round(measureSound(makeAiff(hour, [makeCommonChunk('sowt', 10)]), maxSeconds)), 3_600);
});

test('compressed audio in a WAV or AIFF has the length of its own frames, even if the header claims another rate', (t) => {
  for (const rate of [24_000, 192_000, 4_000_000_000]) {
    t.true(measureSound(wrapInWav(hourOfMp3, 0x55, rate), maxSeconds) >= 3_599, `${rate}`);
  }
  // WAVE_FORMAT_EXTENSIBLE: the actual format is stored in the extension of the header.
  const extension = Buffer.alloc(24);
  extension.writeUInt16LE(22, 0);
  extension.writeUInt16LE(0x55, 8);
  t.true(measureSound(wrapInWav(hourOfMp3, 0xff_fe, 4_000_000_000, extension), maxSeconds) >= 3_599);
  t.true(measureSound(makeAiff(hourOfMp3, [makeCommonChunk('.mp3', 31)]), maxSeconds) >= 3_599);
  // The length of audio in an unknown format is estimated from the number of bytes.
  t.true(measureSound(wrapInWav(Buffer.alloc(40_000, 1), 0x1_61, 4_000_000_000), maxSeconds) >= 10);
});

test('samples are not assumed larger than their format allows, even if the header claims a larger bit depth', (t) => {
  const hour = Buffer.alloc(8_192 * 3_600);
  for (const format of [6, 7]) {
    const wav = wrapInWav(hour, format, 8_192);
    // The header's bytes per second, bytes per sample and bits per sample, all far too large.
    wav.writeUInt32LE(4_000_000_000, 28);
    wav.writeUInt16LE(65_535, 32);
    wav.writeUInt16LE(65_535, 34);
    t.is(Math.round(measureSound(wav, maxSeconds)), 3_600);
  }
  t.is(Math.round(measureSound(makeAiff(hour, [makeCommonChunk('ulaw', 13)]), maxSeconds)), 3_600);
});

test('if an AIFF has several headers, the one that implies the greatest length is used', (t) => {
  const heads = [makeCommonChunk('sowt', 31), makeCommonChunk('sowt', 12)];
  t.is(Math.round(measureSound(makeAiff(Buffer.alloc(8_192 * 60), heads), maxSeconds)), 60);
});

test('the length of an AAC is the sum of its frames, even after an MP3 frame or other data', (t) => {
  // 7 header bytes and 3 audio bytes; 1024 samples at 8 kHz.
  const aac = makeMp3(10_000, [0xf1, 0x6c], 10);
  t.is(Math.round(measureSound(aac, maxSeconds)), 1_280);
  t.true(measureSound(Buffer.concat([makeMp3(1, [0xf3, 0x14], 24), aac]), maxSeconds) >= 1_279);
  t.true(measureSound(Buffer.concat([Buffer.from('x'), hourOfMp3]), maxSeconds) >= 3_599);
});

test('the length of a FLAC is read from its header', (t) => {
  const head = Buffer.alloc(42);
  head.write('fLaC', 'latin1');
  head.writeUIntBE(8_000 << 4, 18, 3);
  head.writeUInt32BE(8_000 * 3_600, 22);
  t.is(Math.round(measureSound(head, maxSeconds)), 3_600);
});

test('audio in an unknown format is estimated at 32 kbit/s, and reading stops at the maximum length', (t) => {
  t.is(measureSound(Buffer.alloc(40_000, 1), maxSeconds), 10);
  t.is(measureSound(Buffer.alloc(0), maxSeconds), 0);
  const seconds = measureSound(makeMp3(150_000, [0xf3, 0x14], 24), 10);
  t.true(seconds > 10 && seconds < 11);
});
