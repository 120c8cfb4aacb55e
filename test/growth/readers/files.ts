import { hideCounts } from '../../../api/documents/pdf-copy.ts';
import { decodeText, isMarkup, readMarkup } from '../../../api/documents/markup-text.ts';
import { addRepeats } from '../../../api/documents/open-document.ts';
import { RepeatedTexts } from '../../../api/documents/repeated-texts.ts';
import { readSheet, readStringTable } from '../../../api/documents/sheet-text.ts';
import { ShownParts } from '../../../api/documents/shown-parts.ts';
import { listAttributes, walkXml } from '../../../api/documents/walk-xml.ts';
import { isXls, readXls } from '../../../api/documents/xls-text.ts';
import { listEntries, unpackHead } from '../../../api/documents/zip-entries.ts';
import { readZip } from '../../../api/documents/zip-text.ts';
import { makeRecord, makeWorkbook, makeXlsText } from '../../support/make-xls.ts';
import { makeZip } from '../../support/make-zip.ts';
import { readsItems, readsText, type Reader } from '../reader.ts';

const maxSize = 32 * 1024;
const xml = ['<a>', '</a>', '<a b="', '<![CDATA[', ']]>', '<!--', '&amp;', 'b="c" ', "b='", '='];
const frames = (element: string) => [
  { head: `<${element} ` },
  { head: `<${element} `, tail: '/>' },
  { head: `<${element} a="`, tail: '"/>' },
  { head: `<${element}>`, tail: `</${element}>` },
];
const many = (count: number, make: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => make(i)).join('');

const listParts = (markups: readonly (readonly [name: string, markup: string])[]): number => {
  const parts = new ShownParts();
  for (const [name, markup] of markups) parts.add(name, markup);
  return parts.maxTimes;
};
const relationships = (count: number, target: string): string =>
  many(count, (i) => `<Relationship Id="r${i}" Target="${target}${i}.xml"/>`);

const sectorBytes = 512;

/** A compound file in whose directory all entries are the same stream, which is as long as the directory. */
function makeSharedStreams(entryCount: number): Buffer {
  const [entriesPerSector, numbersPerSector, endOfChain] = [4, sectorBytes / 4, 0xff_ff_ff_fe];
  const directorySectors = Math.ceil(entryCount / entriesPerSector);
  const used = 2 * directorySectors;
  const tableSectors = Math.ceil(used / (numbersPerSector - 1));
  const numbers = Buffer.alloc(tableSectors * sectorBytes, 0xff);
  const link = (first: number, count: number): void => {
    for (let i = 0; i < count; i += 1)
      numbers.writeUInt32LE(i + 1 < count ? first + i + 1 : endOfChain, (first + i) * 4);
  };
  link(tableSectors, directorySectors);
  link(tableSectors + directorySectors, directorySectors);
  const entry = Buffer.alloc(128);
  entry.write('Workbook', 'utf16le');
  entry.writeUInt16LE(18, 64);
  entry.writeUInt32LE(tableSectors + directorySectors, 116);
  entry.writeUInt32LE(directorySectors * sectorBytes, 120);
  const head = Buffer.alloc(sectorBytes, 0xff);
  head.set(Buffer.from('d0cf11e0a1b11ae1', 'hex'));
  head.writeUInt16LE(9, 30);
  head.writeUInt32LE(tableSectors, 48);
  head.writeUInt32LE(0, 56);
  head.writeUInt32LE(endOfChain, 60);
  head.writeUInt32LE(endOfChain, 68);
  for (let i = 0; i < tableSectors; i += 1) head.writeUInt32LE(i, 76 + i * 4);
  const directory = Array.from({ length: directorySectors * entriesPerSector }, () => entry);
  return Buffer.concat([head, numbers, ...directory, Buffer.alloc(directorySectors * sectorBytes)]);
}

const readSpreadsheet = (bytes: Buffer): unknown => [isXls(bytes), readXls(bytes, 1e9)];

/** Readers of the files of a chat. */
export const fileReaders: readonly Reader[] = [
  readsText('markup', readMarkup, { maxSize, tokens: xml }),
  readsText('encoding of markup', (text) => [decodeText(Buffer.from(text)), isMarkup(Buffer.from(text))], {
    maxSize,
  }),
  readsText('XML', (text) => walkXml(text, { open: (_name, rest) => Array.from(listAttributes(rest)) }), {
    maxSize,
    tokens: xml,
    frames: frames('a'),
  }),
  readsText('attributes', (text) => Array.from(listAttributes(text)), { maxSize, tokens: xml }),
  readsText('table of texts', readStringTable, {
    maxSize,
    tokens: ['<si>', '</si>', '<t>a</t>'],
    frames: frames('sst'),
  }),
  readsText('sheet', readSheet, {
    maxSize,
    tokens: ['<c t="s"><v>', '</v>', '</c>', '<row r="1">', '<c r="A1"/>', '1'],
    frames: [...frames('c'), ...frames('x:c'), { head: '<c/><c t="s"><v>' }],
  }),
  readsText('OpenDocument', (text) => addRepeats(text, new RepeatedTexts()), {
    maxSize,
    tokens: [
      '<s c="9"/>',
      '<s ',
      ' c',
      ' c =',
      '<table-cell number-columns-repeated="9">',
      '</table-cell>',
      '<table>',
    ],
    frames: [
      ...frames('text:s'),
      { head: '<a number-rows-repeated="1"/>' },
      { head: '<table><table-row><s c="1"/>' },
    ],
  }),
  readsText('parts that are shown', (text) => listParts([['a', text]]), {
    maxSize,
    tokens: ['<sheet id="a"/>', '<Relationship Id="a" Target="b"/>', '<sheet ', '../'],
    frames: [...frames('sheet'), { head: '<sheet/><Relationship Id="a" Target="', tail: '"/>' }],
  }),
  readsText('names of parts', (name) => listParts([[name, '<sheet id="a"/>']]), {
    maxSize,
    tokens: ['_rels/', '.rels', '/'],
    frames: [{ tail: '.rels' }],
  }),
  readsItems('parts of a document', listParts, {
    'many of one name': (count) =>
      Array.from({ length: count }, (_, i) => ['a', `<sheet id="${i}"/>`] as const),
    'many of many names': (count) =>
      Array.from({ length: count }, (_, i) => [`a${i}`, `<sheet id="${i}"/>`] as const),
    'many relationships': (count) => [['xl/_rels/a.xml.rels', relationships(count, 'b')] as const],
    'many relationships of a long name': (count) => [
      [`${'x'.repeat(count)}/a.xml`, relationships(count, 'b')] as const,
    ],
  }),
  readsItems(
    'archive',
    (archive: Buffer) => [readZip(archive, 1e9), Array.from(listEntries(archive), unpackHead)],
    {
      'many parts': (count) =>
        makeZip(
          Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}.xml`, Buffer.from('<a>b</a>')])),
        ),
      'many tables and many cells': (count) =>
        makeZip({
          ...Object.fromEntries(
            Array.from({ length: count }, (_, i) => [`${i}.xml`, Buffer.from('<sst><si>a</si></sst>')]),
          ),
          'a.xml': Buffer.from(`<sst>${many(count, () => '<si>a</si>')}</sst>`),
          'b.xml': Buffer.from(many(count, (i) => `<c t="s"><v>${i}</v></c>`)),
        }),
      'ends of texts': (count) =>
        makeZip({ 'a.xml': Buffer.from(`<sst><si>${'ab</si>'.repeat(count)}</sst>`) }),
      'many signatures': (count) => Buffer.from('PK\u0005\u0006'.repeat(count), 'latin1'),
    },
    4_000,
  ),
  readsItems('spreadsheet', readSpreadsheet, {
    'many texts': (count) =>
      makeWorkbook({
        table: Array.from({ length: count }, () => makeXlsText('a')),
        cells: Array.from({ length: count }, (_, i) => [i % 60_000, 0, i] as const),
      }),
    'many sheets': (count) => makeWorkbook({ table: [makeXlsText('a')], cells: [[0, 0, 0]], listed: count }),
    'many records': (count) =>
      makeWorkbook({
        table: [],
        cells: [],
        more: Buffer.concat(Array.from({ length: count }, () => makeRecord(1))),
      }),
    'many pieces of one text': (count) => {
      const piece = Buffer.from('\0a', 'latin1');
      return makeWorkbook({
        table: [
          makeXlsText('a'.repeat(65_000)).subarray(0, 4),
          ...Array.from({ length: count }, () => piece),
        ],
        cells: [],
      });
    },
    'streams that share sectors': (count) => makeSharedStreams(count / 2),
    'one byte': (count) => Buffer.alloc(count, 1),
  }),
  readsText('counts of a PDF', (text) => hideCounts(Buffer.from(text)), { maxSize, tokens: ['/Count', '/'] }),
];
