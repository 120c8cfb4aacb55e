import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { NamedValue } from './parse-request.ts';
import type { PayloadChecksum } from './payload.ts';

/** An object's metadata. */
export interface ObjectRecord {
  key: string;
  size: number;
  /** MD5 in hexadecimal, without quotes. */
  etag: string;
  lastModifiedMs: number;
  /** Content-Type and similar headers, as the client sent them. */
  headers: readonly NamedValue[];
  /** User metadata, names without `x-amz-meta-`. */
  metadata: readonly NamedValue[];
  checksum?: PayloadChecksum | undefined;
}

// An object is one file: its bytes, then its record as JSON, then the record's length and this mark. The record comes
// last because the digest in it is known last. It is in the same file so that one rename publishes both. Two separate
// files could belong to different uploads.
const mark = Buffer.from('S3OBJ-01', 'latin1');
const trailerBytes = 4 + mark.length;
const maxRecordBytes = 64 * 1024;

/**
 * Writes an object's file and waits until it is on disk. `describe` is called once the bytes are written. On failure,
 * the caller must remove the file.
 */
export async function writeObjectFile(
  path: string,
  chunks: AsyncIterable<Buffer>,
  describe: (size: number) => ObjectRecord,
): Promise<ObjectRecord> {
  const handle = await open(path, 'wx');
  try {
    let size = 0;
    for await (const chunk of chunks) {
      await handle.writeFile(chunk);
      size += chunk.length;
    }
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

/** Reads the record of an open object file. The object's bytes are at 0 to `size`. */
export async function readObjectRecord(handle: FileHandle): Promise<ObjectRecord> {
  const { size: fileBytes } = await handle.stat();
  const trailer = await readExactly(handle, fileBytes - trailerBytes, trailerBytes);
  const recordBytes = trailer.readUInt32BE(0);
  if (!trailer.subarray(4).equals(mark) || recordBytes > maxRecordBytes) {
    throw new Error('not an object file of this server');
  }
  const recordStart = fileBytes - trailerBytes - recordBytes;
  const json = await readExactly(handle, recordStart, recordBytes);
  const record = JSON.parse(json.toString('utf8')) as ObjectRecord;
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
