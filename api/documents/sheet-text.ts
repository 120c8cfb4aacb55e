import { readAttribute, walkXml } from './walk-xml.ts';

/**
 * A spreadsheet (xlsx) stores each text once, and its cells refer to texts by number. So a file of a few kilobytes can
 * show one text in a hundred thousand cells, and readers then read the text that many times.
 */

const stringTable = /<(?:[^\s<>:]+:)?sst[\s>]/;
const cell = /<(?:[^\s<>:]+:)?c[\s/>]/;
const maxRows = 1_048_576;
const maxColumns = 16_384;

/** Reads the texts of a spreadsheet's string table; null for other markup. */
export function readStringTable(markup: string): readonly string[] | null {
  if (!stringTable.test(markup)) return null;
  const strings: string[] = [];
  let pieces: string[] = [];
  walkXml(markup, {
    open(name) {
      if (name === 'si') pieces = [];
    },
    text: (text) => pieces.push(text),
    close(name) {
      if (name !== 'si') return;
      strings.push(pieces.join(''));
      // Otherwise, a table with more ends than starts would repeat all texts so far.
      pieces = [];
    },
  });
  return strings;
}

export interface SheetContent {
  /**
   * Number of cells that show each text of the table, by the index of the text; NaN is the index of references that
   * cannot be parsed.
   */
  readonly cellCounts: ReadonlyMap<number, number>;
  /** Empty cells up to the last non-empty row and column. Readers write them out as commas or `NaN`. */
  readonly blankCells: number;
}

/** Returns null for other markup. */
export function readSheet(markup: string): SheetContent | null {
  if (!cell.test(markup)) return null;
  const reader = new SheetReader();
  walkXml(markup, reader);
  return reader;
}

class SheetReader implements SheetContent {
  readonly cellCounts = new Map<number, number>();
  #filledCells = 0;
  #lastRow = 0;
  #lastColumn = 0;
  #row = 0;
  #column = 0;
  #isCell = false;
  #isFilled = false;
  #isTextIndex = false;
  #value: string | null = null;

  get blankCells(): number {
    return Math.max(0, this.#lastRow * this.#lastColumn - this.#filledCells);
  }

  open(name: string, attributes: string): void {
    if (name === 'row') this.#openRow(readAttribute(attributes, 'r'));
    else if (name === 'c') this.#openCell(readAttribute(attributes, 'r'), readAttribute(attributes, 't'));
    else if (this.#isCell && (name === 'v' || name === 'f' || name === 'is')) {
      this.#isFilled = true;
      if (name === 'v') this.#value = '';
    }
  }

  text(text: string): void {
    if (this.#value !== null) this.#value += text;
  }

  close(name: string): void {
    if (name === 'v' && this.#value !== null) this.#closeValue(this.#value.trim());
    else if (name === 'c') this.#closeCell();
  }

  #openRow(number: string | null): void {
    this.#row = number === null ? this.#row + 1 : readNumber(number, maxRows);
    this.#column = 0;
  }

  #openCell(reference: string | null, type: string | null): void {
    this.#isCell = true;
    this.#isFilled = false;
    this.#isTextIndex = type === 's';
    if (reference === null) {
      this.#column += 1;
      return;
    }
    const match = /^\$?([A-Z]{1,3})\$?(\d{1,7})$/i.exec(reference.trim());
    if (match === null) throw new RangeError('the reference of a cell is invalid');
    this.#column = 0;
    for (const letter of match[1]!.toUpperCase())
      this.#column = this.#column * 26 + letter.charCodeAt(0) - 64;
    this.#row = readNumber(match[2]!, maxRows);
    if (this.#column > maxColumns) throw new RangeError('a cell is beyond the last column');
  }

  #closeValue(value: string): void {
    this.#value = null;
    if (!this.#isTextIndex) return;
    const index = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
    this.cellCounts.set(index, (this.cellCounts.get(index) ?? 0) + 1);
  }

  #closeCell(): void {
    this.#isCell = false;
    if (!this.#isFilled) return;
    this.#filledCells += 1;
    this.#lastRow = Math.max(this.#lastRow, this.#row);
    this.#lastColumn = Math.max(this.#lastColumn, this.#column);
  }
}

function readNumber(text: string, max: number): number {
  const number = /^\s*\d{1,7}\s*$/.test(text) ? Number(text) : Number.NaN;
  if (!(number <= max)) throw new RangeError('a cell is beyond the last row');
  return number;
}
