import type { RepeatedTexts } from './repeated-texts.ts';
import { listAttributes, readAttribute, walkXml, type XmlVisitor } from './walk-xml.ts';

/**
 * Finds content that OpenDocument stores once and shows repeatedly: a cell repeated over several columns, a row
 * repeated several times, an element that stands for several spaces. Readers write out every repetition.
 */

const repeated = /number-(?:rows|columns)-repeated\s*=|<(?:[^\s<>:]+:)?s\s[^<>]*\bc\s*=/;
/** Number of spaces per added text: about as many as fit into one token. */
const spacesPerText = 64;

/**
 * Adds the repeated texts of a part, once for each repetition after the first occurrence. The first occurrence is added
 * with the rest of the part's text.
 * @returns the number of empty cells up to the last non-empty row and column
 */
export function addRepeats(markup: string, texts: RepeatedTexts): number {
  if (!repeated.test(markup)) return 0;
  const reader = new RepeatReader(texts);
  walkXml(markup, reader);
  return reader.blankCells;
}

interface Table {
  rows: number;
  columns: number;
  filledCells: number;
  /** Trailing rows without content. They are added to `rows` only if non-empty rows follow. */
  emptyRows: number;
  readonly outer: Table | null;
}

interface Row {
  readonly times: number;
  columns: number;
  filledCells: number;
  emptyCells: number;
  readonly outerTimes: number;
  readonly outer: Row | null;
}

interface Cell {
  readonly times: number;
  /** Value that is shown if the cell has no text. */
  readonly value: string;
  isFilled: boolean;
  readonly outerTimes: number;
  readonly outer: Cell | null;
}

const cellNames = new Set(['table-cell', 'covered-table-cell']);
const valueNames = new Set(['value', 'date-value', 'time-value', 'boolean-value', 'string-value']);

class RepeatReader implements XmlVisitor {
  blankCells = 0;
  readonly #texts: RepeatedTexts;
  #table: Table | null = null;
  #row: Row | null = null;
  #cell: Cell | null = null;
  /** Number of times that the current content is shown. */
  #times = 1;

  constructor(texts: RepeatedTexts) {
    this.#texts = texts;
  }

  open(name: string, attributes: string): void {
    if (name === 'table') {
      this.#table = { rows: 0, columns: 0, filledCells: 0, emptyRows: 0, outer: this.#table };
    } else if (name === 'table-row') {
      const times = readTimes(attributes, 'number-rows-repeated');
      const counts = { columns: 0, filledCells: 0, emptyCells: 0 };
      this.#row = { times, ...counts, outerTimes: this.#times, outer: this.#row };
      this.#times *= times;
    } else if (cellNames.has(name)) {
      const times = readTimes(attributes, 'number-columns-repeated');
      const value = readValue(attributes);
      this.#cell = { times, value, isFilled: false, outerTimes: this.#times, outer: this.#cell };
      this.#times *= times;
    } else if (name === 's') {
      const spaces = readTimes(attributes, 'c');
      if (spaces > spacesPerText) {
        this.#texts.add(' '.repeat(spacesPerText), Math.ceil(spaces / spacesPerText) * this.#times);
      }
    }
  }

  text(text: string): void {
    if (text.trim() === '') return;
    if (this.#cell !== null) this.#cell.isFilled = true;
    this.#texts.add(text, this.#times - 1);
  }

  close(name: string): void {
    if (cellNames.has(name)) this.#closeCell();
    else if (name === 'table-row') this.#closeRow();
    else if (name === 'table') this.#closeTable();
  }

  #closeCell(): void {
    const cell = this.#cell;
    if (cell === null) throw new RangeError('a cell ends without a start');
    // The value is an attribute, so it is not part of the text that was added before.
    if (!cell.isFilled) this.#texts.add(cell.value, this.#times);
    this.#times = cell.outerTimes;
    this.#cell = cell.outer;
    const row = this.#row;
    if (row === null) return;
    if (cell.isFilled || cell.value !== '') {
      row.columns += row.emptyCells + cell.times;
      row.filledCells += cell.times;
      row.emptyCells = 0;
    } else row.emptyCells += cell.times;
  }

  #closeRow(): void {
    const row = this.#row;
    if (row === null) throw new RangeError('a row ends without a start');
    this.#times = row.outerTimes;
    this.#row = row.outer;
    const table = this.#table;
    if (table === null) return;
    if (row.columns > 0) {
      table.rows += table.emptyRows + row.times;
      table.columns = Math.max(table.columns, row.columns);
      table.filledCells += row.filledCells * row.times;
      table.emptyRows = 0;
    } else table.emptyRows += row.times;
  }

  #closeTable(): void {
    const table = this.#table;
    if (table === null) throw new RangeError('a table ends without a start');
    this.#table = table.outer;
    this.blankCells += Math.max(0, table.rows * table.columns - table.filledCells);
    // A cell that contains a table is not empty.
    if (this.#cell !== null && table.rows > 0) this.#cell.isFilled = true;
  }
}

/** Readers accept no more than a billion repetitions. */
function readTimes(attributes: string, name: string): number {
  const value = readAttribute(attributes, name);
  if (value === null) return 1;
  if (!/^\s*\+?\d{1,9}\s*$/.test(value)) throw new RangeError('a number of repetitions cannot be read');
  return Math.max(1, Number(value));
}

function readValue(attributes: string): string {
  const values = Array.from(listAttributes(attributes)).filter(([name]) => valueNames.has(name));
  return values.map(([, value]) => value).join(' ');
}
