/** Assumed byte rate of audio in an unknown format. If the real rate is higher, the length is overestimated. */
const unknownBytesPerSecond = 4_000;

/**
 * Estimates how many seconds of audio a vendor may find in these bytes. The estimate is never much too low. The length
 * is determined for WAV and AIFF by the rates in their headers, for MP3 and AAC by their frames, for FLAC by its
 * header. The caller controls how much time a byte represents: a kilobyte of WAV can be ten seconds. Compressed audio
 * inside a WAV or AIFF may state other rates than the header around it; the longer of the two lengths is used.
 *
 * @param maxSeconds limit beyond which measuring may stop
 */
export function measureSound(bytes: Buffer, maxSeconds: number): number {
  const headers = readHeaders(bytes);
  if (headers === null) return Number.POSITIVE_INFINITY;
  const rates = headers.flatMap(({ bytesPerSecond }) => bytesPerSecond).filter((rate) => rate > 0);
  if (rates.length > 0) {
    const byHeader = bytes.length / Math.min(...rates);
    const isCompressed = headers.some(({ form }) => form === 'compressed');
    return isCompressed ? Math.max(byHeader, measureUnknown(bytes, maxSeconds)) : byHeader;
  }
  const audio = skipTag(bytes);
  if (audio.toString('latin1', 0, 4) === 'fLaC') {
    return Math.max(readFlac(audio), bytes.length / unknownBytesPerSecond);
  }
  return measureFrame(audio, 0) > 0 ? sumFrames(audio, maxSeconds) : measureUnknown(audio, maxSeconds);
}

function measureUnknown(bytes: Buffer, maxSeconds: number): number {
  return Math.max(bytes.length / unknownBytesPerSecond, sumFrames(bytes, maxSeconds));
}

/**
 * `linear`: uncompressed. `logarithmic`: one byte per sample, regardless of the header. `compressed`: a codec that may
 * have its own rates.
 */
type SampleForm = 'linear' | 'logarithmic' | 'compressed';
const wavForms = new Map<number, SampleForm>([
  [1, 'linear'],
  [3, 'linear'],
  [6, 'logarithmic'],
  [7, 'logarithmic'],
  // A chunk that is too short to contain the actual format.
  [0xff_fe, 'linear'],
]);
const extensible = { format: 0xff_fe, minChunkBytes: 40 };
const aiffForms = new Map<string, SampleForm>([
  ...['none', 'sowt', 'twos', 'in24', 'in32', 'fl32', 'fl64'].map((name) => [name, 'linear'] as const),
  ['alaw', 'logarithmic'],
  ['ulaw', 'logarithmic'],
]);
const maxSampleBytes = 8;

function countSampleBytes(form: SampleForm, bits: number): number {
  if (form === 'linear') return Math.min(maxSampleBytes, Math.max(1, Math.ceil(bits / 8)));
  // Compressed audio takes at least one bit per sample.
  return form === 'logarithmic' ? 1 : 1 / 8;
}

/** The playback rates that one chunk states. */
interface SoundHeader {
  readonly form: SampleForm;
  /** One value for each field that states it; zero means not stated. */
  readonly bytesPerSecond: readonly number[];
}

/**
 * Reads all headers of a WAV or AIFF, because readers differ in which they use.
 * @returns null if there are too many chunks
 */
function readHeaders(bytes: Buffer): SoundHeader[] | null {
  const start = bytes.toString('latin1', 0, 12);
  if (/^FORM[^]{4}AIF[FC]/.test(start)) {
    const isPlain = start.endsWith('AIFF');
    return findChunks(bytes, 'COMM', true)?.map((at) => readCommon(bytes, at, isPlain)) ?? null;
  }
  if (!/^(?:RIF[FX]|RF64|BW64)[^]{4}WAVE/.test(start)) return [];
  const isBigEndian = start.startsWith('RIFX');
  return findChunks(bytes, 'fmt ', isBigEndian)?.map((at) => readFormat(bytes, at, isBigEndian)) ?? null;
}

const maxChunks = 10_000;
/** The shortest useful chunk, including its name and length. */
const minChunkBytes = 26;

function findChunks(bytes: Buffer, name: string, isBigEndian: boolean): number[] | null {
  const found: number[] = [];
  let chunks = 0;
  for (let at = 12; at + minChunkBytes <= bytes.length;) {
    chunks += 1;
    if (chunks > maxChunks) return null;
    if (bytes.toString('latin1', at, at + 4) === name) found.push(at);
    const size = isBigEndian ? bytes.readUInt32BE(at + 4) : bytes.readUInt32LE(at + 4);
    at += 8 + size + (size % 2);
  }
  return found;
}

function readFormat(bytes: Buffer, at: number, isBigEndian: boolean): SoundHeader {
  const number = (offset: number, size: 2 | 4): number =>
    isBigEndian ? bytes.readUIntBE(at + offset, size) : bytes.readUIntLE(at + offset, size);
  const isExtensible =
    number(8, 2) === extensible.format &&
    number(4, 4) >= extensible.minChunkBytes &&
    at + 8 + extensible.minChunkBytes <= bytes.length;
  const form = wavForms.get(number(isExtensible ? 32 : 8, 2)) ?? 'compressed';
  const [channels, rate] = [number(10, 2), number(12, 4)];
  const bySamples = channels * rate * countSampleBytes(form, number(22, 2));
  return { form, bytesPerSecond: [number(16, 4), number(20, 2) * rate, bySamples] };
}

/** An 80-bit float: the exponent and a 64-bit mantissa, of which the first 32 bits suffice. */
const readExtended = (bytes: Buffer, at: number): number =>
  bytes.readUInt32BE(at + 2) * 2 ** ((bytes.readUInt16BE(at) & 0x7fff) - 16_383 - 31);

function readCommon(bytes: Buffer, at: number, isPlain: boolean): SoundHeader {
  const name = isPlain ? 'none' : bytes.toString('latin1', at + 26, at + 30).toLowerCase();
  const form = aiffForms.get(name) ?? 'compressed';
  const sampleBytes = countSampleBytes(form, bytes.readUInt16BE(at + 14));
  return { form, bytesPerSecond: [bytes.readUInt16BE(at + 8) * readExtended(bytes, at + 16) * sampleBytes] };
}

/** Seconds according to the header: 20 bits of sample rate and 36 bits of sample count. */
function readFlac(bytes: Buffer): number {
  if (bytes.length < 26) return 0;
  const rate = bytes.readUIntBE(18, 3) >> 4;
  const samples = (bytes.readUInt8(21) & 0x0f) * 2 ** 32 + bytes.readUInt32BE(22);
  return rate > 0 ? samples / rate : 0;
}

/** Skips a leading ID3 tag. */
function skipTag(bytes: Buffer): Buffer {
  if (bytes.length < 10 || bytes.toString('latin1', 0, 3) !== 'ID3') return bytes;
  const size = bytes.subarray(6, 10).reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0);
  return bytes.subarray(10 + size);
}

/** Sample rates of MPEG audio, by version (2.5, none, 2, 1) and code. */
const sampleRates = [
  [11_025, 12_000, 8_000],
  [],
  [22_050, 24_000, 16_000],
  [44_100, 48_000, 32_000],
] as const;

/** Sample rates of AAC, by code. */
const aacSampleRates = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
] as const;

/** Seconds of the MP3 or AAC frame at this offset; 0 if there is none. */
function measureFrame(bytes: Buffer, at: number): number {
  if (at + 4 > bytes.length || bytes[at] !== 0xff) return 0;
  const [second, third] = [bytes[at + 1]!, bytes[at + 2]!];
  if ((second & 0xf6) === 0xf0) {
    const aacRate = aacSampleRates[(third >> 2) & 15];
    return aacRate === undefined ? 0 : 1_024 / aacRate;
  }
  const version = (second >> 3) & 3;
  const layer = 4 - ((second >> 1) & 3);
  const rate = sampleRates[version]![(third >> 2) & 3];
  if ((second & 0xe0) !== 0xe0 || layer === 4 || rate === undefined || third >> 4 === 15) return 0;
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1_152;
  return samples / rate;
}

/**
 * Sums all frames whose headers occur in the bytes, even inside another frame: readers that lose sync resume at any of
 * them. In music, about one match in a dozen is false.
 */
function sumFrames(bytes: Buffer, maxSeconds: number): number {
  let seconds = 0;
  for (let at = 0; at < bytes.length && seconds <= maxSeconds; at += 1) {
    if (bytes[at] === 0xff) seconds += measureFrame(bytes, at);
  }
  return seconds;
}
