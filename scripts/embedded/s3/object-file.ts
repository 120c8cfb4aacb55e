import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { NamedValue } from './parse-request.ts';
import type { PayloadChecksum } from './payload.ts';

/** Of a multipart upload: a checksum of all bytes, or one of the checksums of the parts. */
export type ChecksumType = 'FULL_OBJECT' | 'COMPOSITE';

/** An object's metadata. */
export interface ObjectRecord {
  key: string;
  size: number;
  /** MD5 in hexadecimal, without quotes. Of a multipart upload: the MD5 of its parts' MD5s, and their number. */
  etag: string;
  lastModifiedMs: number;
  /** Content-Type and similar headers, as the client sent them. */
  headers: readonly NamedValue[];
  /** User metadata, names without `x-amz-meta-`. */
  metadata: readonly NamedValue[];
  /** Without a type, it is one of all bytes. */
  checksum?: (PayloadChecksum & { type?: ChecksumType | undefined }) | undefined;
  /** The multipart upload that this object was completed from. */
  uploadId?: string | undefined;
}

/** A part's metadata. */
export interface PartRecord {
  size: number;
  /** MD5 in hexadecimal, without quotes. */
  etag: string;
  lastModifiedMs: number;
  checksum?: PayloadChecksum | undefined;
}

// An object, or a part of one, is one file: its bytes, then its record as JSON, then the record's length and this mark.
// The record comes last because the digest in it is known last. It is in the same file so that one rename publishes
// both. Two separate files could belong to different uploads.
const mark = Buffer.from('S3OBJ-01', 'latin1');
const trailerBytes = 4 + mark.length;
const maxRecordBytes = 64 * 1024;

/**
 * Writes the file of an object or a part and waits until it is on disk. `describe` is called once the bytes are
 * written. A chunk's memory may be reused for the next one. On failure, the caller must remove the file.
 */
export async function writeObjectFile<Record extends ObjectRecord | PartRecord>(
  path: string,
  chunks: AsyncIterable<Buffer>,
  describe: (size: number) => Record,
): Promise<Record> {
  const handle = await open(path, 'wx');
  try {
    const size = await writeChunks(handle, chunks);
    const record = describe(size);
    const json = Buffer.from(JSON.stringify(record));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(json.length);
    await handle.writeFile(Buffer.concat([json, length, mark]));
    await handle.sync();
    return record;
  } finally {
    await handle.close();
  }
}

/** Chunks of a socket have up to 64 KB. Writing each by itself takes longer than hashing it. */
const bytesPerWrite = 512 * 1024;

/** @returns how many bytes there were */
async function writeChunks(handle: FileHandle, chunks: AsyncIterable<Buffer>): Promise<number> {
  let size = 0;
  let pending: Buffer | null = null;
  let pendingBytes = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    for (let at = 0; at < chunk.length;) {
      pending ??= Buffer.allocUnsafeSlow(bytesPerWrite);
      const copied = chunk.copy(pending, pendingBytes, at);
      at += copied;
      pendingBytes += copied;
      if (pendingBytes < pending.length) continue;
      await handle.writeFile(pending);
      pendingBytes = 0;
    }
  }
  if (pending !== null && pendingBytes > 0) await handle.writeFile(pending.subarray(0, pendingBytes));
  return size;
}

/** Reads the record of an object's open file. The object's bytes are at 0 to `size`. */
export async function readObjectRecord(handle: FileHandle): Promise<ObjectRecord> {
  return await readRecord<ObjectRecord>(handle);
}

/** Reads the record of a part's open file. The part's bytes are at 0 to `size`. */
export async function readPartRecord(handle: FileHandle): Promise<PartRecord> {
  return await readRecord<PartRecord>(handle);
}

async function readRecord<Record extends { size: number }>(handle: FileHandle): Promise<Record> {
  const { size: fileBytes } = await handle.stat();
  const trailer = await readExactly(handle, fileBytes - trailerBytes, trailerBytes);
  const recordBytes = trailer.readUInt32BE(0);
  if (!trailer.subarray(4).equals(mark) || recordBytes > maxRecordBytes) {
    throw new Error('not an object file of this server');
  }
  const recordStart = fileBytes - trailerBytes - recordBytes;
  const json = await readExactly(handle, recordStart, recordBytes);
  const record = JSON.parse(json.toString('utf8')) as Record;
  if (record.size !== recordStart) throw new Error('object file has the wrong length');
  return record;
}

async function readExactly(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  if (position < 0) throw new Error('object file too short');
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await handle.read(buffer, 0, length, position);
  if (bytesRead !== length) throw new Error('object file too short');
  return buffer;
}
