import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createInflateRaw } from 'node:zlib';

const endOfDirectory = 0x06054b50;
const directoryHeaderBytes = 46;
const localHeaderBytes = 30;
/** The end record has 22 bytes and may be followed by a comment of up to 64 KB. */
const maxTailBytes = 22 + 65_535;

/**
 * Extracts the compressed file whose name ends with `nameEnd` from an archive below 4 GB. Does not validate the
 * archive, so its content must be trusted.
 * @throws Error if the archive has no such file
 */
export async function extractEntry(archive, nameEnd, target) {
  const { start, end } = await findEntry(archive, nameEnd);
  // Executable by every user who can read the project's folder.
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
    const tail = await read(Math.max(0, size - maxTailBytes), maxTailBytes);
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
        // Read the lengths again, because the two headers of a file may have different extra fields.
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
