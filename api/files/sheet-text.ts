import { readMarkup } from './markup-text.ts';

/**
 * A spreadsheet keeps each text once, and its cells name texts by number: a few kilobytes show one text in a hundred
 * thousand cells. Whatever reads the sheet reads it as often.
 */

const stringTable = /<(?:\w+:)?sst[\s>]/;
const stringStart = /<(?:\w+:)?si[\s>]/;
const cell = /^(?:\w+:)?c[\s>/]/;
const cellValue = /^(?:\w+:)?v[\s>]/;
/** Also where the letter is written as a character reference. */
const namesText = /\st\s*=\s*["'](?:s["']|&#)/;

/** The texts of a spreadsheet's table; null for other markup. */
export function readStringTable(markup: string): readonly string[] | null {
  if (!stringTable.test(markup)) return null;
  const [, ...items] = markup.split(stringStart);
  return items.map((item) => readMarkup(`<si ${item}`) ?? '');
}

/** The numbers of the texts that the cells of a sheet show, in order; NaN for one that cannot be read. */
export function* listShownTexts(markup: string): Generator<number> {
  let isText = false;
  for (const piece of markup.split('<')) {
    if (cell.test(piece)) isText = namesText.test(piece.slice(0, piece.indexOf('>')));
    else if (isText && cellValue.test(piece)) {
      const value = piece.slice(piece.indexOf('>') + 1).trim();
      yield /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
    }
  }
}
