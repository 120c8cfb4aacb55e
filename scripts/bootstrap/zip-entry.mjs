import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createInflateRaw } from 'node:zlib';

const endOfDirectory = 0x06054b50;
const directoryHeaderBytes = 46;
const localHeaderBytes = 30;
/** The end record has 22 bytes, and a comment of up to 64 KB may follow it. */
const longestTail = 22 + 65_535;

/**
 * Extracts the one compressed file of an archive whose name ends as given. Reads archives below 4 GB whose content is
 * known to be right: nothing else is checked.
 * @throws Error where the archive has no such file
 */
export async function extractEntry(archive, nameEnd, target) {
  const { start, end } = await findEntry(archive, nameEnd);
  // An executable: whoever may read the project's folder may run it.
  const file = createWriteStream(target, { mode: 0o755 });
  await pipeline(createReadStream(archive, { start, end }), createInflateRaw(), file);
}

async function findEntry(archive, nameEnd) {
  const file = await open(archive);
  try {
    const read = async (position, length) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
      return buffer.subarray(0, bytesRead);
    };
    const { size } = await file.stat();
    const tail = await read(Math.max(0, size - longestTail), longestTail);
    const signature = Buffer.alloc(4);
    signature.writeUInt32LE(endOfDirectory);
    const record = tail.subarray(tail.lastIndexOf(signature));
    const directory = await read(record.readUInt32LE(16), record.readUInt32LE(12));
    for (let at = 0; at < directory.length;) {
      const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((field) =>
        directory.readUInt16LE(at + field),
      );
      const nameAt = at + directoryHeaderBytes;
      if (directory.toString('utf8', nameAt, nameAt + nameBytes).endsWith(nameEnd)) {
        const headerAt = directory.readUInt32LE(at + 42);
        // The lengths are read again: the two headers of a file may have different extra fields.
        const header = await read(headerAt, localHeaderBytes);
        const start = headerAt + localHeaderBytes + header.readUInt16LE(26) + header.readUInt16LE(28);
        return { start, end: start + directory.readUInt32LE(at + 20) - 1 };
      }
      at = nameAt + nameBytes + extraBytes + commentBytes;
    }
  } finally {
    await file.close();
  }
  throw new Error(`the archive has no ${nameEnd}`);
}
