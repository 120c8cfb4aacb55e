import { crc32, deflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const TRUECOLOR = 2;
const GRAYSCALE = 0;

/**
 * Creates a valid PNG of a single colour, with only the chunks that the format requires (PNG specification, sections 5
 * and 11).
 */
export function makePng(
  width: number,
  height: number,
  [red, green, blue]: readonly [number, number, number],
): Buffer {
  // Each row starts with its filter: 0, none.
  const row = Buffer.alloc(1 + width * 3);
  for (let x = 0; x < width; x += 1) {
    row.set([red, green, blue], 1 + x * 3);
  }
  const rows = Buffer.concat(Array.from({ length: height }, () => row));
  return wrapRows(width, height, [8, TRUECOLOR], rows);
}

const bombSide = 20_000;
let bomb: Buffer | undefined;

/** A decompression bomb: a black 1-bit PNG of 50 KB, whose 400 million pixels take over a gigabyte once decoded. */
export function makePngBomb(): Buffer {
  bomb ??= wrapRows(bombSide, bombSide, [1, GRAYSCALE], Buffer.alloc((1 + bombSide / 8) * bombSide));
  return bomb;
}

/** Returns the size in a PNG's header, or null if it is not a PNG. */
export function readPngSize(bytes: Buffer): { readonly width: number; readonly height: number } | null {
  if (bytes.length < 24 || !bytes.subarray(0, 8).equals(SIGNATURE)) return null;
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** @param format bits per sample and colour type */
function wrapRows(width: number, height: number, format: readonly [number, number], rows: Buffer): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([...format, 0, 0, 0], 8);
  return Buffer.concat([
    SIGNATURE,
    makeChunk('IHDR', header),
    makeChunk('IDAT', deflateSync(rows)),
    makeChunk('IEND', Buffer.alloc(0)),
  ]);
}

function makeChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}
