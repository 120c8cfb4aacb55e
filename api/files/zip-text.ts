import { constants, inflateRawSync } from 'node:zlib';
import type { DocumentAnswer } from './file-content.ts';
import { decodeText, isMarkup, readMarkup } from './markup-text.ts';
import { listShownTexts, readStringTable } from './sheet-text.ts';

/** What all entries of an archive may unpack to. */
const maxUnpackedBytes = 64 * 1024 * 1024;
/** Parts of office documents and books that hold text by their names. */
const textEntry = /\.(?:xml|x?html?|txt|md|csv|json|rels)$/i;
/** Enough of an entry to see whether it is markup: deflate makes at most a thousand bytes of one. */
const headBytes = 1024;

const endSignature = Buffer.from('PK\u0005\u0006', 'latin1');
const entrySignature = 0x02014b50;
const endBytes = 22;
const entryHeadBytes = 46;
const localHeadBytes = 30;
const methods = { stored: 0, deflated: 8 };

/** The text of a document that is a ZIP archive of XML or HTML: docx, xlsx, pptx, odt, epub. */
export function readZip(archive: Buffer, maxCharacters: number): DocumentAnswer {
  const texts: string[] = [];
  const strings: string[] = [];
  const shown: number[] = [];
  let characters = 0;
  let bytesLeft = maxUnpackedBytes;
  try {
    for (const entry of listEntries(archive)) {
      // Relations may give any name to a part that is text; pictures and fonts are not read by vendors.
      if (!textEntry.test(entry.name) && !isMarkup(unpackHead(entry))) continue;
      const unpacked = unpack(entry, bytesLeft);
      bytesLeft -= unpacked.length;
      if (bytesLeft <= 0) return { fault: 'too_large' };
      const text = decodeText(unpacked);
      const words = isMarkup(unpacked) ? readMarkup(text) : text;
      if (words === null) return { fault: 'unreadable' };
      characters += words.length;
      if (characters > maxCharacters) return { fault: 'too_long' };
      texts.push(words);
      const table = readStringTable(text);
      if (table === null) for (const index of listShownTexts(text)) shown.push(index);
      else for (const string of table) strings.push(string);
    }
  } catch (error) {
    return {
      fault: (error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE' ? 'too_large' : 'unreadable',
    };
  }
  for (const index of shown) {
    const string = strings[index];
    if (string === undefined) return { fault: 'unreadable' };
    characters += string.length;
    if (characters > maxCharacters) return { fault: 'too_long' };
  }
  return { texts: [...texts, shown.map((index) => strings[index]).join(' ')].filter(Boolean), pages: 0 };
}

interface ZipEntry {
  readonly name: string;
  readonly method: number;
  readonly packed: Buffer;
}

/**
 * As the directory at the end has them. Readers find the directory in different ways: by its place, by its length, by the
 * number of entries. An archive in which these disagree shows each of them another document, and is refused.
 *
 * Throws a RangeError where the archive is cut or damaged.
 */
function* listEntries(archive: Buffer): Generator<ZipEntry> {
  const end = archive.lastIndexOf(endSignature);
  if (end < 0) throw new RangeError('the archive has no directory');
  const count = archive.readUInt16LE(end + 10);
  const directoryBytes = archive.readUInt32LE(end + 12);
  let at = archive.readUInt32LE(end + 16);
  const commentBytes = archive.readUInt16LE(end + 20);
  if (at + directoryBytes !== end || end + endBytes + commentBytes !== archive.length) {
    throw new RangeError('the directory is not where it is said to be');
  }
  let found = 0;
  for (; at < end; found += 1) {
    if (archive.readUInt32LE(at) !== entrySignature) throw new RangeError('the directory is damaged');
    const nameBytes = archive.readUInt16LE(at + 28);
    const local = archive.readUInt32LE(at + 42);
    const start =
      local + localHeadBytes + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
    yield {
      name: archive.toString('utf8', at + entryHeadBytes, at + entryHeadBytes + nameBytes),
      method: archive.readUInt16LE(at + 10),
      packed: archive.subarray(start, start + archive.readUInt32LE(at + 20)),
    };
    at += entryHeadBytes + nameBytes + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  if (found !== count) throw new RangeError('the directory has another number of entries than it says');
}

function unpack({ packed, method }: ZipEntry, maxBytes: number): Buffer {
  if (method === methods.stored) return packed;
  if (method !== methods.deflated) throw new RangeError('an entry is packed in a form that is not known');
  return inflateRawSync(packed, { maxOutputLength: maxBytes });
}

function unpackHead({ packed, method }: ZipEntry): Buffer {
  const head = packed.subarray(0, headBytes);
  return method === methods.deflated ? inflateRawSync(head, { finishFlush: constants.Z_SYNC_FLUSH }) : head;
}
