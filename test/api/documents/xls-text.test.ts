import test from 'ava';
import type { DocumentResult } from '../../../api/documents/file-content.ts';
import { readXls } from '../../../api/documents/xls-text.ts';
import {
  makeCompoundFile,
  makeRecord,
  makeWorkbook,
  makeXlsText,
  type XlsOptions,
} from '../../support/make-xls.ts';

const read = (options: XlsOptions, maxCharacters = 1e12): DocumentResult =>
  readXls(makeCompoundFile('Workbook', makeWorkbook(options)), maxCharacters);

function countTimes(result: DocumentResult, word: string): number {
  if ('fault' in result) throw new Error(result.fault);
  return result.texts.reduce((sum, { text, times }) => sum + (text.split(word).length - 1) * times, 0);
}

const column = (length: number, text: number): XlsOptions['cells'] =>
  Array.from({ length }, (_, row) => [row, 0, text] as const);

test('a string in an xls spreadsheet is included once per cell that shows it, and the tokens of other content are estimated from its size', (t) => {
  const table = [
    Buffer.concat([makeXlsText('one'), makeXlsText('words '.repeat(1_000), 8), makeXlsText('ж two', 1)]),
  ];
  const result = read({ table, cells: [...column(1_000, 1), [1_000, 0, 2]] });
  t.is(countTimes(result, 'words'), 1_000_000);
  t.is(countTimes(result, 'ж two'), 1);
  const bytes = makeCompoundFile('Workbook', makeWorkbook({ table, cells: column(1_000, 1) }));
  t.like(readXls(bytes, 1e12), { otherTokens: bytes.length / 2 });
  t.deepEqual(readXls(bytes, 1_000_000), { fault: 'too_long' });
});

test('a string continued in another record is read whole, even if its characters become wider', (t) => {
  const whole = makeXlsText('first half, ');
  whole.writeUInt16LE('first half, second half'.length, 0);
  for (const continuation of [
    Buffer.concat([Buffer.from([0]), Buffer.from('second half', 'latin1')]),
    Buffer.concat([Buffer.from([1]), Buffer.from('second half', 'utf16le')]),
  ]) {
    const table = [whole, Buffer.concat([continuation, makeXlsText('next')])];
    const result = read({
      table,
      cells: [
        [0, 0, 0],
        [0, 1, 1],
      ],
    });
    t.is(countTimes(result, 'first half, second half'), 1);
    t.is(countTimes(result, 'next'), 1);
  }
});

test('the text of a sheet is included as many times as the sheet is listed, and a sheet with an invalid offset is unreadable', (t) => {
  const table = [makeXlsText('words')];
  t.is(countTimes(read({ table, cells: column(10, 0), listed: 50 }), 'words'), 500);
  t.deepEqual(read({ table, cells: column(10, 0), place: 24 }), { fault: 'unreadable' });
});

test('empty cells of an xls spreadsheet add tokens up to the last non-empty cell', (t) => {
  const table = [makeXlsText('a')];
  const dense = read({ table, cells: [[0, 0, 0]] }) as { otherTokens: number };
  const sparse = read({
    table,
    cells: [
      [0, 0, 0],
      [65_535, 255, 0],
    ],
  }) as { otherTokens: number };
  t.true(sparse.otherTokens - dense.otherTokens >= 65_536 * 256 - 2);
});

test('a workbook without its container is read; one with a password or an invalid index is rejected', (t) => {
  const options = { table: [makeXlsText('words')], cells: column(10, 0) };
  t.is(countTimes(readXls(makeWorkbook(options), 1e12), 'words'), 10);
  t.deepEqual(read({ ...options, more: makeRecord(0x2f, Buffer.alloc(6)) }), { fault: 'protected' });
  t.deepEqual(read({ ...options, cells: column(10, 1) }), { fault: 'unreadable' });
});

test('a truncated or cyclic compound file is unreadable, and one without a workbook is estimated from its size', (t) => {
  const stream = makeWorkbook({ table: [makeXlsText('words')], cells: column(10, 0) });
  const whole = makeCompoundFile('Workbook', stream);
  const loop = Buffer.from(whole);
  loop.writeUInt32LE(2, 512 + 3 * 4);
  for (const bytes of [loop, whole.subarray(0, 1_600), whole.subarray(0, 20)]) {
    t.deepEqual(readXls(bytes, 1e12), { fault: 'unreadable' });
  }
  const other = makeCompoundFile('WordDocument', stream);
  t.deepEqual(readXls(other, 1e12), { texts: [], pages: 0, otherTokens: other.length / 2 });
});
