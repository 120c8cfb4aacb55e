import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

export const checksumAlgorithms = ['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256'] as const;
export type ChecksumAlgorithm = (typeof checksumAlgorithms)[number];

export interface RunningChecksum {
  update(chunk: Uint8Array): void;
  /** The value as in the x-amz-checksum headers: base64 of the big-endian bytes. */
  digest(): string;
}

const digestBytes: Readonly<Record<ChecksumAlgorithm, number>> = {
  crc32: 4,
  crc32c: 4,
  crc64nvme: 8,
  sha1: 20,
  sha256: 32,
};

export function createChecksum(algorithm: ChecksumAlgorithm): RunningChecksum {
  switch (algorithm) {
    case 'crc32':
      return createCrc32();
    case 'crc32c':
      return createCrc32c();
    case 'crc64nvme':
      return createCrc64();
    case 'sha1':
    case 'sha256': {
      const hash = createHash(algorithm);
      return {
        update(chunk) {
          hash.update(chunk);
        },
        digest: () => hash.digest('base64'),
      };
    }
    default:
      return algorithm satisfies never;
  }
}

export function isChecksumAlgorithm(name: string): name is ChecksumAlgorithm {
  return (checksumAlgorithms as readonly string[]).includes(name);
}

/** Returns whether a value could come from this algorithm: canonical base64 of the right length. */
export function isChecksumValue(algorithm: ChecksumAlgorithm, value: string): boolean {
  const bytes = Buffer.from(value, 'base64');
  return bytes.length === digestBytes[algorithm] && bytes.toString('base64') === value;
}

function createCrc32(): RunningChecksum {
  let state = 0;
  return {
    update: (chunk) => {
      state = crc32(chunk, state);
    },
    digest: () => encodeWords(state),
  };
}

function createCrc32c(): RunningChecksum {
  const table = getCrc32cTable();
  let state = 0xff_ff_ff_ff;
  return {
    update: (chunk) => {
      for (const byte of chunk) state = (table[(state ^ byte) & 0xff] ?? 0) ^ (state >>> 8);
    },
    digest: () => encodeWords(~state >>> 0),
  };
}

// The 64 bits are stored in two words, because a bigint per byte would be about fifty times slower.
function createCrc64(): RunningChecksum {
  const { high: highTable, low: lowTable } = getCrc64Tables();
  let high = 0xff_ff_ff_ff;
  let low = 0xff_ff_ff_ff;
  return {
    update: (chunk) => {
      for (const byte of chunk) {
        const index = (low ^ byte) & 0xff;
        low = (lowTable[index] ?? 0) ^ ((low >>> 8) | (high << 24));
        high = (highTable[index] ?? 0) ^ (high >>> 8);
      }
    },
    digest: () => encodeWords(~high >>> 0, ~low >>> 0),
  };
}

function encodeWords(...words: number[]): string {
  const bytes = Buffer.alloc(words.length * 4);
  for (const [index, word] of words.entries()) bytes.writeUInt32BE(word, index * 4);
  return bytes.toString('base64');
}

let crc32cTable: Uint32Array | undefined;

function getCrc32cTable(): Uint32Array {
  crc32cTable ??= Uint32Array.from({ length: 256 }, (_, index) => {
    let value = index;
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0x82_f6_3b_78 : value >>> 1;
    return value;
  });
  return crc32cTable;
}

let crc64Tables: { high: Uint32Array; low: Uint32Array } | undefined;

function getCrc64Tables(): { high: Uint32Array; low: Uint32Array } {
  if (crc64Tables !== undefined) return crc64Tables;
  const polynomial = 0x9a_6c_93_29_ac_4b_c9_b5n;
  const high = new Uint32Array(256);
  const low = new Uint32Array(256);
  for (let index = 0; index < 256; index += 1) {
    let value = BigInt(index);
    for (let bit = 0; bit < 8; bit += 1) value = value & 1n ? (value >> 1n) ^ polynomial : value >> 1n;
    high[index] = Number(value >> 32n);
    low[index] = Number(value & 0xff_ff_ff_ffn);
  }
  crc64Tables = { high, low };
  return crc64Tables;
}
