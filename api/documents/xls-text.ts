import { isCompoundFile, readStreams } from './compound-file.ts';
import type { DocumentResult } from './file-content.ts';
import { RepeatedTexts } from './repeated-texts.ts';

/**
 * An older spreadsheet (xls) stores each text once, as newer ones do, and its cells refer to texts by number. All other
 * content takes at least as many bytes in the file as its displayed text has, so its tokens are estimated from its
 * bytes.
 */

/** Record types ([MS-XLS] 2.3). */
const records = {
  formula: 0x06,
  end: 0x0a,
  password: 0x2f,
  continued: 0x3c,
  sheet: 0x85,
  numbers: 0xbd,
  richText: 0xd6,
  strings: 0xfc,
  stringCell: 0xfd,
  number: 0x203,
  text: 0x204,
  boolErr: 0x205,
  shortNumber: 0x27e,
};
/** BOF record types of all versions. */
const bofTypes = new Set([0x09, 0x209, 0x409, 0x809]);
/** BOF record type of the last version, which stores texts in a table. */
const latestBofType = 0x809;
/** Cell records start with the row and the column. */
const cells = new Set([
  records.formula,
  records.numbers,
  records.richText,
  records.stringCell,
  records.number,
  records.text,
  records.boolErr,
  records.shortNumber,
]);
const streamNames = new Set(['workbook', 'book']);
const bytesPerToken = 2;

/** Also accepts bare records without a container, as some readers do. */
export const isXls = (bytes: Buffer): boolean =>
  isCompoundFile(bytes) ||
  (bytes.length > 4 && bytes.readUInt16LE(0) === latestBofType && bytes.readUInt16LE(2) <= 32);

export function readXls(bytes: Buffer, maxCharacters: number): DocumentResult {
  const texts = new RepeatedTexts();
  let otherTokens = Math.ceil(bytes.length / bytesPerToken);
  try {
    const streams = isCompoundFile(bytes) ? readStreams(bytes, streamNames) : [bytes];
    for (const stream of streams) {
      const book = new WorkbookReader(stream);
      if (book.isProtected) return { fault: 'protected' };
      const times = book.maxTimes;
      for (const [index, cellCount] of book.cellCounts) {
        const text = book.strings[index];
        if (text === undefined) throw new RangeError('a cell refers to a missing text');
        texts.add(text, cellCount * times);
      }
      otherTokens += book.blankCells * times + (times - 1) * Math.ceil(stream.length / bytesPerToken);
    }
  } catch (error) {
    if (error instanceof RangeError) return { fault: 'unreadable' };
    throw error;
  }
  return texts.characters > maxCharacters
    ? { fault: 'too_long' }
    : { texts: texts.list(1), pages: 0, otherTokens };
}

class WorkbookReader {
  readonly strings: string[] = [];
  /** Number of cells that show each text of the table, by the index of the text. */
  readonly cellCounts = new Map<number, number>();
  blankCells = 0;
  isProtected = false;
  /** Number of times that each sheet is shown, by its offset. */
  readonly #sheets = new Map<number, number>();
  #filledCells = 0;
  #lastRow = 0;
  #lastColumn = 0;

  /** @throws RangeError if records are truncated, or if there is no sheet at a stated offset */
  constructor(stream: Buffer) {
    const sheetOffsets = new Set<number>();
    let depth = 0;
    let table: Buffer[] | null = null;
    for (let at = 0; at + 4 <= stream.length;) {
      const type = stream.readUInt16LE(at);
      const data = stream.subarray(at + 4, at + 4 + stream.readUInt16LE(at + 2));
      // Texts continue across records.
      if (type === records.strings) table = [data.subarray(8)];
      else if (type === records.continued) table?.push(data);
      else if (table !== null) {
        for (const text of readStrings(table)) this.strings.push(text);
        table = null;
      }
      if (bofTypes.has(type)) {
        if (depth === 0) sheetOffsets.add(at);
        depth += 1;
      } else if (type === records.end) {
        depth -= 1;
        if (depth === 0) this.#endSheet();
        // Data after the last end record is padding.
        if (depth < 0) break;
      } else this.#read(type, data);
      at += 4 + data.length;
    }
    this.#endSheet();
    for (const offset of this.#sheets.keys()) {
      if (!sheetOffsets.has(offset)) throw new RangeError('the offset of a sheet is wrong');
    }
  }

  get maxTimes(): number {
    return Array.from(this.#sheets.values()).reduce((max, times) => Math.max(max, times), 1);
  }

  #read(type: number, data: Buffer): void {
    if (type === records.password) this.isProtected = true;
    else if (type === records.sheet) {
      const offset = data.readUInt32LE(0);
      this.#sheets.set(offset, (this.#sheets.get(offset) ?? 0) + 1);
    } else if (cells.has(type)) {
      const columns = type === records.numbers ? Math.floor((data.length - 6) / 6) : 1;
      this.#filledCells += columns;
      this.#lastRow = Math.max(this.#lastRow, data.readUInt16LE(0) + 1);
      this.#lastColumn = Math.max(this.#lastColumn, data.readUInt16LE(2) + columns);
      if (type !== records.stringCell) return;
      const index = data.readUInt32LE(6);
      this.cellCounts.set(index, (this.cellCounts.get(index) ?? 0) + 1);
    }
  }

  #endSheet(): void {
    this.blankCells += Math.max(0, this.#lastRow * this.#lastColumn - this.#filledCells);
    this.#filledCells = 0;
    this.#lastRow = 0;
    this.#lastColumn = 0;
  }
}

/** Reads the texts of a table that is split into pieces, possibly in the middle of a text ([MS-XLS] 2.5.293). */
function* readStrings(pieces: readonly Buffer[]): Generator<string> {
  let index = 0;
  let piece = pieces[0]!;
  let at = 0;
  const next = (): boolean => {
    index += 1;
    piece = pieces[index] ?? Buffer.alloc(0);
    at = 0;
    return index < pieces.length;
  };
  while (at < piece.length || next()) {
    let remaining = piece.readUInt16LE(at);
    let flags = piece.readUInt8(at + 2);
    at += 3;
    let formatBytes = 0;
    if ((flags & 8) !== 0) {
      formatBytes += piece.readUInt16LE(at) * 4;
      at += 2;
    }
    if ((flags & 4) !== 0) {
      formatBytes += piece.readUInt32LE(at);
      at += 4;
    }
    let text = '';
    for (;;) {
      const width = (flags & 1) + 1;
      const length = Math.min(remaining, Math.floor((piece.length - at) / width));
      text += piece.toString(width === 2 ? 'utf16le' : 'latin1', at, at + length * width);
      at += length * width;
      remaining -= length;
      if (remaining === 0 || !next()) break;
      // Each piece states its character width again.
      flags = piece.readUInt8(0);
      at = 1;
    }
    yield text;
    while (formatBytes > piece.length - at) {
      formatBytes -= piece.length - at;
      if (!next()) return;
    }
    at += formatBytes;
  }
}
