import { constants, inflateRawSync } from 'node:zlib';

/** Enough of an entry to detect markup. Deflate expands one byte to about a thousand at most. */
const headBytes = 1024;

const endSignature = Buffer.from('PK\u0005\u0006', 'latin1');
const entrySignature = 0x02014b50;
const endBytes = 22;
const entryHeaderBytes = 46;
const localHeaderBytes = 30;
const methods = { stored: 0, deflated: 8 };

export interface ZipEntry {
  readonly name: string;
  readonly method: number;
  readonly packed: Buffer;
}

/**
 * Lists the entries of the central directory. Readers locate the directory by its offset, its length or the number of
 * entries. An archive in which these disagree would have different contents for different readers, and is rejected.
 * @throws RangeError if the archive is truncated or damaged
 */
export function* listEntries(archive: Buffer): Generator<ZipEntry> {
  const end = archive.lastIndexOf(endSignature);
  if (end < 0) throw new RangeError('the archive has no directory');
  const count = archive.readUInt16LE(end + 10);
  const directoryBytes = archive.readUInt32LE(end + 12);
  let at = archive.readUInt32LE(end + 16);
  const commentBytes = archive.readUInt16LE(end + 20);
  if (at + directoryBytes !== end || end + endBytes + commentBytes !== archive.length) {
    throw new RangeError('the directory is not at its stated offset');
  }
  let found = 0;
  for (; at < end; found += 1) {
    if (archive.readUInt32LE(at) !== entrySignature) throw new RangeError('the directory is damaged');
    const nameBytes = archive.readUInt16LE(at + 28);
    const local = archive.readUInt32LE(at + 42);
    const start =
      local + localHeaderBytes + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
    yield {
      name: archive.toString('utf8', at + entryHeaderBytes, at + entryHeaderBytes + nameBytes),
      method: archive.readUInt16LE(at + 10),
      packed: archive.subarray(start, start + archive.readUInt32LE(at + 20)),
    };
    at += entryHeaderBytes + nameBytes + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  if (found !== count) throw new RangeError('the directory has the wrong number of entries');
}

export function unpack({ packed, method }: ZipEntry, maxBytes: number): Buffer {
  if (method === methods.stored) return packed;
  if (method !== methods.deflated) throw new RangeError('unknown compression method');
  return inflateRawSync(packed, { maxOutputLength: maxBytes });
}

export function unpackHead({ packed, method }: ZipEntry): Buffer {
  const head = packed.subarray(0, headBytes);
  return method === methods.deflated ? inflateRawSync(head, { finishFlush: constants.Z_SYNC_FLUSH }) : head;
}
