/** A cached vector, and the tokens billed for its input when that is requested again. */
export interface StoredVector {
  /** Float32, little-endian. */
  readonly vector: Buffer;
  readonly tokens: number;
  /** Whether the count is ours: the vendor reported no tokens, or a sum that cannot be split among the inputs. */
  readonly counted: boolean;
}

/** Dimensions u32 · tokens u32 · counted u8. */
const headerBytes = 9;

export function encodeEntry({ vector, tokens, counted }: StoredVector): Buffer {
  const header = Buffer.allocUnsafe(headerBytes);
  header.writeUInt32LE(vector.length / 4, 0);
  header.writeUInt32LE(tokens, 4);
  header.writeUInt8(counted ? 1 : 0, 8);
  return Buffer.concat([header, vector]);
}

/** Returns null if the bytes are not a vector of this length. */
export function decodeEntry(bytes: Buffer, dimensions: number): StoredVector | null {
  if (bytes.length !== headerBytes + dimensions * 4 || bytes.readUInt32LE(0) !== dimensions) return null;
  const flag = bytes.readUInt8(8);
  if (flag > 1) return null;
  return { vector: bytes.subarray(headerBytes), tokens: bytes.readUInt32LE(4), counted: flag === 1 };
}
