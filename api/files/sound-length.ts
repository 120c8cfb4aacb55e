/** What holds more than this in a second is counted as longer than it is, where its form is not known here. */
const unknownBytesPerSecond = 4_000;

/**
 * How many seconds a vendor may hear in so many bytes, and never much less: WAV and AIFF by the rates in their heads, MP3
 * by its frames, FLAC by its head. A caller chooses how much time a byte holds: a kilobyte of WAV can be ten seconds.
 *
 * @param mostSeconds beyond which there is no need to look further
 */
export function measureSound(bytes: Buffer, mostSeconds: number): number {
  const start = bytes.toString('latin1', 0, 12);
  const bytesPerSecond = readWav(bytes, start) ?? readAiff(bytes, start);
  if (bytesPerSecond !== null) return bytes.length / bytesPerSecond;
  const audio = skipTag(bytes);
  if (audio.toString('latin1', 0, 4) === 'fLaC') {
    return Math.max(readFlac(audio), bytes.length / unknownBytesPerSecond);
  }
  return measureFrame(audio, 0) > 0 ? sumFrames(audio, mostSeconds) : bytes.length / unknownBytesPerSecond;
}

/** `fmt ` of WAV, `COMM` of AIFF. */
const chunkIds = { format: 0x66_6d_74_20, common: 0x43_4f_4d_4d };
/** Sound of more chunks than this before its end is as long as can be. */
const maxChunks = 10_000;
/** Of PCM, floating point, the two logarithmic forms, and any of them with more channels: a whole number of bytes. */
const plainFormats = new Set([1, 3, 6, 7, 0xff_fe]);

/** The least that a second may take by any of the fields that say so; null for other forms. */
function readWav(bytes: Buffer, start: string): number | null {
  const isBig = start.startsWith('RIFX');
  if (!/^(?:RIF[FX]|RF64|BW64)[^]{4}WAVE/.test(start)) return null;
  const number = (at: number, size: 2 | 4): number =>
    isBig ? bytes.readUIntBE(at, size) : bytes.readUIntLE(at, size);
  let least = Number.POSITIVE_INFINITY;
  let chunks = 0;
  for (let at = 12; at + 24 <= bytes.length; at += 8 + number(at + 4, 4) + (number(at + 4, 4) % 2)) {
    chunks += 1;
    if (chunks > maxChunks) return 0;
    if (bytes.readUInt32BE(at) !== chunkIds.format) continue;
    const [format, channels, rate] = [number(at + 8, 2), number(at + 10, 2), number(at + 12, 4)];
    const bits = number(at + 22, 2);
    // What is packed takes a bit a sample at the very least.
    const sampleBytes = plainFormats.has(format) ? Math.max(1, Math.ceil(bits / 8)) : 1 / 8;
    for (const perSecond of [number(at + 16, 4), number(at + 20, 2) * rate, channels * rate * sampleBytes]) {
      if (perSecond > 0) least = Math.min(least, perSecond);
    }
  }
  return least === Number.POSITIVE_INFINITY ? null : least;
}

/** 80 bits of floating point: the exponent, and the 64 bits of the number, of which the first 32 are enough. */
const readExtended = (bytes: Buffer, at: number): number =>
  bytes.readUInt32BE(at + 2) * 2 ** ((bytes.readUInt16BE(at) & 0x7fff) - 16_383 - 31);

function readAiff(bytes: Buffer, start: string): number | null {
  if (!/^FORM[^]{4}AIF[FC]/.test(start)) return null;
  for (let at = 12; at + 26 <= bytes.length;) {
    const size = bytes.readUInt32BE(at + 4);
    if (bytes.readUInt32BE(at) === chunkIds.common) {
      const isPlain = start.endsWith('AIFF');
      const sampleBytes = isPlain ? Math.max(1, Math.ceil(bytes.readUInt16BE(at + 14) / 8)) : 1 / 8;
      const rate = bytes.readUInt16BE(at + 8) * readExtended(bytes, at + 16) * sampleBytes;
      return rate > 0 ? rate : null;
    }
    at += 8 + size + (size % 2);
  }
  return null;
}

/** Seconds, as the head says: 20 bits of samples a second, and 36 of samples. */
function readFlac(bytes: Buffer): number {
  if (bytes.length < 26) return 0;
  const rate = bytes.readUIntBE(18, 3) >> 4;
  const samples = (bytes.readUInt8(21) & 0x0f) * 2 ** 32 + bytes.readUInt32BE(22);
  return rate > 0 ? samples / rate : 0;
}

/** Without the tag (ID3) in front of it. */
function skipTag(bytes: Buffer): Buffer {
  if (bytes.length < 10 || bytes.toString('latin1', 0, 3) !== 'ID3') return bytes;
  const size = bytes.subarray(6, 10).reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0);
  return bytes.subarray(10 + size);
}

/** Samples a second of MPEG audio, by its version (2.5, none, 2, 1) and a code. */
const sampleRates = [
  [11_025, 12_000, 8_000],
  [],
  [22_050, 24_000, 16_000],
  [44_100, 48_000, 32_000],
] as const;

/** The seconds of the frame that begins there; 0 where none does. */
function measureFrame(bytes: Buffer, at: number): number {
  if (at + 4 > bytes.length || bytes[at] !== 0xff) return 0;
  const [second, third] = [bytes[at + 1]!, bytes[at + 2]!];
  const version = (second >> 3) & 3;
  const layer = 4 - ((second >> 1) & 3);
  const rate = sampleRates[version]![(third >> 2) & 3];
  if ((second & 0xe0) !== 0xe0 || layer === 4 || rate === undefined || third >> 4 === 15) return 0;
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1_152;
  return samples / rate;
}

/**
 * Of all that looks like the head of a frame, also within another: readers that lose their place find their way in again
 * at any of them. In music one in a dozen is none.
 */
function sumFrames(bytes: Buffer, mostSeconds: number): number {
  let seconds = 0;
  for (let at = 0; at < bytes.length && seconds <= mostSeconds; at += 1) {
    if (bytes[at] === 0xff) seconds += measureFrame(bytes, at);
  }
  return seconds;
}
