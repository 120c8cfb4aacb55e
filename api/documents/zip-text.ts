import type { DocumentResult, FileContent } from './file-content.ts';
import { decodeText, isMarkup, readMarkup } from './markup-text.ts';
import { addRepeats } from './open-document.ts';
import { RepeatedTexts } from './repeated-texts.ts';
import { readSheet, readStringTable } from './sheet-text.ts';
import { ShownParts } from './shown-parts.ts';
import { listEntries, unpack, unpackHead } from './zip-entries.ts';

/** Limit for the unpacked size of all entries of an archive. */
const maxUnpackedBytes = 64 * 1024 * 1024;
/** Names of text parts in office documents and books. */
const textEntry = /\.(?:xml|x?html?|txt|md|csv|json|rels)$/i;
/** The content type of a workbook with binary cells instead of XML (xlsb). */
const binarySheet = /ms-excel\.sheet\.binary/i;

/** Reads the text of a document that is a ZIP archive of XML or HTML: docx, xlsx, pptx, ods, odt, epub. */
export function readZip(archive: Buffer, maxCharacters: number): DocumentResult {
  const reader = new ArchiveReader();
  let bytesLeft = maxUnpackedBytes;
  try {
    for (const entry of listEntries(archive)) {
      // A text part can have any name, because relationships refer to it. Images and fonts are skipped, because vendors
      // do not read them.
      if (!textEntry.test(entry.name) && !isMarkup(unpackHead(entry))) continue;
      const unpacked = unpack(entry, bytesLeft);
      bytesLeft -= unpacked.length;
      if (bytesLeft <= 0) return { fault: 'too_large' };
      reader.add(entry.name, unpacked);
      if (reader.characters > maxCharacters) return { fault: 'too_long' };
    }
    const content = reader.finish();
    const characters = content.texts.reduce((sum, { text, times }) => sum + text.length * times, 0);
    return characters > maxCharacters ? { fault: 'too_long' } : content;
  } catch (error) {
    const isTooLarge = (error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE';
    return { fault: isTooLarge ? 'too_large' : 'unreadable' };
  }
}

/** Collects the text of every part, as many times as the document shows the part. */
class ArchiveReader {
  readonly #texts = new RepeatedTexts();
  readonly #parts = new ShownParts();
  readonly #tables: (readonly string[])[] = [];
  /** Number of cells that show each text of the tables, by the index of the text. */
  readonly #cellCounts = new Map<number, number>();
  #blankCells = 0;

  /** Number of characters of the texts so far. */
  get characters(): number {
    return this.#texts.characters;
  }

  /** @throws RangeError if a part can be interpreted in more than one way */
  add(name: string, bytes: Buffer): void {
    const text = decodeText(bytes);
    if (!isMarkup(bytes)) {
      this.#texts.add(text, 1);
      return;
    }
    const words = readMarkup(text);
    if (words === null) throw new RangeError('the markup declares entities');
    if (name.toLowerCase() === '[content_types].xml' && binarySheet.test(text))
      throw new RangeError('the cells are not XML');
    this.#texts.add(words, 1);
    this.#parts.add(name, text);
    this.#blankCells += addRepeats(text, this.#texts);
    const table = readStringTable(text);
    if (table === null) this.#addSheet(text);
    else this.#tables.push(table);
  }

  finish(): FileContent {
    const found = new Set<number>();
    for (const table of this.#tables) {
      for (const [index, text] of table.entries()) {
        const times = this.#cellCounts.get(index);
        if (times === undefined) continue;
        found.add(index);
        this.#texts.add(text, times - 1);
      }
    }
    if (found.size < this.#cellCounts.size) throw new RangeError('a cell refers to a missing text');
    const times = this.#parts.maxTimes;
    return { texts: this.#texts.list(times), pages: 0, otherTokens: this.#blankCells * times };
  }

  #addSheet(text: string): void {
    const sheet = readSheet(text);
    if (sheet === null) return;
    for (const [index, times] of sheet.cellCounts)
      this.#cellCounts.set(index, (this.#cellCounts.get(index) ?? 0) + times);
    this.#blankCells += sheet.blankCells;
  }
}
