import test from 'ava';
import type { DocumentResult, FileContent } from '../../../api/documents/file-content.ts';
import { readZip } from '../../../api/documents/zip-text.ts';
import { makeZip } from '../../support/make-zip.ts';

/** Content that is stored once and shown many times is returned once, with the number of times that it is shown. */

const read = (parts: Readonly<Record<string, string>>): DocumentResult =>
  readZip(
    makeZip(Object.fromEntries(Object.entries(parts).map(([name, text]) => [name, Buffer.from(text)]))),
    1e12,
  );

function open(parts: Readonly<Record<string, string>>): FileContent {
  const result = read(parts);
  if ('fault' in result) throw new Error(result.fault);
  return result;
}

function countTimes({ texts }: FileContent, word: string): number {
  return texts.reduce((sum, { text, times }) => sum + (text.split(word).length - 1) * times, 0);
}

// Sheets, slides and chapters

const relations = (targets: Readonly<Record<string, string>>): string =>
  `<Relationships>${Object.entries(targets)
    .map(([id, target]) => `<Relationship Id="${id}" Type="t" Target="${target}"/>`)
    .join('')}</Relationships>`;
const book = (ids: readonly string[]): string =>
  `<workbook xmlns:r="r"><sheets>${ids.map((id, i) => `<sheet name="a>${i}" sheetId="${i + 1}" r:id="${id}"/>`).join('')}</sheets></workbook>`;
const sheet =
  '<worksheet><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>words</t></is></c></row></sheetData></worksheet>';

test('the text of a document part is included once per reference to the part, in every notation of the reference', (t) => {
  const workbook = (ids: readonly string[], targets: Readonly<Record<string, string>>): FileContent =>
    open({
      'xl/workbook.xml': book(ids),
      'xl/_rels/workbook.xml.rels': relations(targets),
      'xl/worksheets/sheet1.xml': sheet,
    });
  const target = 'worksheets/sheet1.xml';
  t.is(countTimes(workbook(['rId1'], { rId1: target }), 'words'), 1);
  t.is(countTimes(workbook(Array<string>(300).fill('rId1'), { rId1: target }), 'words'), 300);
  t.is(countTimes(workbook(['rId1', '&#114;Id1', 'r&#x49;d1'], { rId1: target }), 'words'), 3);
  const candidates = [
    target,
    '/xl/worksheets/sheet1.xml',
    '../xl/./worksheets/Sheet1.xml',
    'worksheets/%73heet1.xml',
  ];
  const targets = Object.fromEntries(candidates.map((candidate, i) => [`rId${i}`, candidate]));
  t.is(countTimes(workbook(Object.keys(targets), targets), 'words'), 4);
});

test('the text of slides and chapters is included once per reference to them', (t) => {
  const slides = '<p:sldId id="256" r:id="rId7"/>'.repeat(301);
  const slide = open({
    'ppt/presentation.xml': `<p:presentation><p:sldIdLst>${slides}</p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relations({ rId7: 'slides/slide1.xml' }),
    'ppt/slides/slide1.xml': '<p:sld><a:t>words</a:t></p:sld>',
  });
  t.is(countTimes(slide, 'words'), 301);
  const manifest = '<item id="a" href="a.xhtml"/><item id="b" href="a.xhtml"/><item id="c" href="c.xhtml"/>';
  const chapter = open({
    'OEBPS/content.opf': `<package><manifest>${manifest}</manifest><spine><itemref idref="a"/><itemref idref="b"/><itemref idref="c"/></spine></package>`,
    'OEBPS/a.xhtml': '<html>words</html>',
    'OEBPS/c.xhtml': '<html>others</html>',
  });
  t.is(countTimes(chapter, 'words'), 2);
});

test('the text of each sheet of a normal workbook is included once, even if the sheets refer to one another', (t) => {
  const content = open({
    '[Content_Types].xml': '<Types><Default Extension="xml" ContentType="application/xml"/></Types>',
    'xl/workbook.xml': book(['rId1', 'rId2']),
    'xl/_rels/workbook.xml.rels': relations({ rId1: 'worksheets/sheet1.xml', rId2: 'worksheets/sheet2.xml' }),
    'xl/worksheets/sheet1.xml': sheet,
    'xl/worksheets/sheet2.xml': sheet,
    'xl/worksheets/_rels/sheet1.xml.rels': relations({ rId1: 'sheet2.xml', rId2: 'sheet2.xml' }),
  });
  t.is(countTimes(content, 'words'), 2);
  t.is(content.otherTokens, 0);
});

test('a document with one id for two parts, or with binary cells, is unreadable', (t) => {
  const twice = `${relations({ rId1: 'a.xml' }).replace('</Relationships>', '')}<Relationship Id="rId1" Target="b.xml"/></Relationships>`;
  t.deepEqual(read({ 'xl/_rels/workbook.xml.rels': twice }), { fault: 'unreadable' });
  const binary = 'application/vnd.ms-excel.sheet.binary.macroEnabled.main';
  t.deepEqual(read({ '[Content_Types].xml': `<Types><Default ContentType="${binary}"/></Types>` }), {
    fault: 'unreadable',
  });
});

// Cells

const table = (rows: string): FileContent =>
  open({ 'content.xml': `<office:spreadsheet><table:table>${rows}</table:table></office:spreadsheet>` });
const row = (times: number, cells: string): string =>
  `<table:table-row table:number-rows-repeated="${times}">${cells}</table:table-row>`;
const cell = (times: number, content: string): string =>
  `<table:table-cell table:number-columns-repeated='${times}'>${content}</table:table-cell>`;

test('a repeated cell of a repeated row is included once per position, and comments or sections cannot hide it', (t) => {
  t.is(countTimes(table(row(200, cell(200, '<text:p>words</text:p>'))), 'words'), 40_000);
  for (const hidden of [
    '<!-- </table:table-cell></table:table-row> -->',
    '<![CDATA[</table:table-row>]]>',
    '<?a </table:table-cell> ?>',
  ]) {
    t.is(countTimes(table(row(200, cell(200, `<text:p>${hidden}words</text:p>`))), 'words'), 40_000, hidden);
  }
  const millions = table(row(1_000_000, cell(16_384, '<text:p>words</text:p>')));
  t.is(countTimes(millions, 'words'), 1_000_000 * 16_384);
});

test("text that is stored only as a cell's value is included, and so are repeated spaces written as one element", (t) => {
  const value =
    '<table:table-cell office:value-type="string" office:string-value="words" table:number-columns-repeated="9"/>';
  t.is(countTimes(table(row(3, value)), 'words'), 27);
  const spaces = open({ 'content.xml': '<text:p>a<text:s text:c="1000000"/>b</text:p>' });
  t.true(countTimes(spaces, ' ') >= 1_000_000);
  t.is(countTimes(open({ 'content.xml': '<text:p>a<text:s text:c="4"/>b</text:p>' }), ' '), 1);
});

test('empty cells add tokens up to the last non-empty cell, and not beyond', (t) => {
  const words = '<text:p>words</text:p>';
  // Every LibreOffice spreadsheet ends with such empty rows.
  const trailingRows = row(1_048_573, cell(16_384, ''));
  t.is(table(row(1, cell(1, words)) + trailingRows).otherTokens, 0);
  t.is(
    table(
      row(1, cell(1, words)) + row(9, cell(16_384, '')) + row(1, cell(4, '') + cell(1, words)) + trailingRows,
    ).otherTokens,
    11 * 5 - 2,
  );
});

const cells = (rows: string): DocumentResult =>
  read({ 'xl/worksheets/sheet1.xml': `<worksheet><sheetData>${rows}</sheetData></worksheet>` });

test('the empty cells of a sparse sheet add tokens up to the last cell with content; a cell with only a style has none', (t) => {
  const value = (reference: string): string => `<c r="${reference}"><v>7</v></c>`;
  t.like(cells(`<row r="1">${value('A1')}</row><row r="20000">${value('CV20000')}</row>`), {
    otherTokens: 1_999_998,
  });
  t.like(cells(`<row r="1">${value('A1')}</row><row r="1048576"><c r="XFD1048576" s="1"/></row>`), {
    otherTokens: 0,
  });
  // Cell references may be omitted; the position then follows from the order.
  t.like(cells('<row><c><v>1</v></c><c/><c><v>1</v></c></row><row/><row><c><f>1+1</f></c></row>'), {
    otherTokens: 6,
  });
  for (const reference of ['XFE1', 'A1048577', 'A0x', ''])
    t.deepEqual(cells(`<row>${value(reference)}</row>`), { fault: 'unreadable' }, reference);
});

test('a shared string is found by its index, even if the document has comments or other string tables', (t) => {
  const long = 'words '.repeat(100);
  const shows = `<worksheet><sheetData><row>${'<c t="s"><v>0</v></c>'.repeat(50)}</row></sheetData></worksheet>`;
  const strings = (texts: string): string => `<sst>${texts}</sst>`;
  for (const parts of [
    { 'a.xml': strings(`<!-- <si><t>x</t></si> --><si><t>${long}</t></si>`), 'b.xml': shows },
    { 'a.xml': strings('<si><t>x</t></si>'), 'b.xml': strings(`<si><t>${long}</t></si>`), 'c.xml': shows },
  ]) {
    t.true(countTimes(open(parts), 'words') >= 50 * 100);
  }
});
