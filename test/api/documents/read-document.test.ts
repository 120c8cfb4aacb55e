import test from 'ava';
import type { DocumentResult, DocumentRequest } from '../../../api/documents/file-content.ts';
import { loadPdfium } from '../../../api/documents/pdf-text.ts';
import { readDocument } from '../../../api/documents/read-file.ts';
import { makePdf } from '../../support/make-pdf.ts';
import { makeZip } from '../../support/make-zip.ts';

const pdfium = await loadPdfium();

function read(bytes: Buffer, options: Partial<Omit<DocumentRequest, 'bytes'>> = {}): DocumentResult {
  return readDocument(pdfium, { kind: 'pdf', maxCharacters: 4_000_000, maxPages: 1_000, ...options, bytes });
}

/** The texts of a result, each repeated as many times as it is shown. */
function listTexts(result: DocumentResult): string[] {
  if ('fault' in result) throw new Error(`the document is ${result.fault}`);
  return result.texts.flatMap(({ text, times }) => Array.from({ length: times }, () => text));
}

function countTimes(result: DocumentResult, word: string): number {
  if ('fault' in result) throw new Error(`the document is ${result.fault}`);
  return result.texts.reduce((sum, { text, times }) => sum + (text.split(word).length - 1) * times, 0);
}

test('the text of every page is read, including text beyond the page edge and repeated form content', (t) => {
  const result = read(makePdf(['alpha', 'beta'], { repeat: 100, form: { text: 'gamma', paints: 5 } }));
  t.like(result, { pages: 2 });
  const texts = listTexts(result);
  for (const [index, word] of ['alpha', 'beta'].entries()) {
    t.is(texts[index]!.split(word).length - 1, 100);
    t.is(texts[index]!.split('gamma').length - 1, 500);
  }
});

test('a PDF with more pages or characters than the limit is too long', (t) => {
  t.deepEqual(read(makePdf(['a', 'b', 'c']), { maxPages: 2 }), { fault: 'too_long' });
  t.deepEqual(read(makePdf(['one', 'two'], { repeat: 100 }), { maxCharacters: 600 }), {
    fault: 'too_long',
  });
});

test('the pages of a PDF come from its page tree, even if its declared page count differs', (t) => {
  for (const count of [1, 99, 1_000, -1]) {
    const result = read(makePdf(['alpha'], { count, listed: 100 }));
    t.like(result, { pages: 100 }, `declared count ${count}`);
    const texts = listTexts(result);
    t.is(texts.join(' ').split('alpha').length - 1, 100);
  }
  t.like(read(makePdf(['alpha', 'beta'], { count: 3 })), { pages: 2 });
  const long = makePdf(['alpha'], { count: 1, listed: 100 });
  t.deepEqual(read(long, { maxPages: 99 }), { fault: 'too_long' });
});

test('a file that is not a PDF or is truncated is unreadable, and a cyclic one does not crash the reader', (t) => {
  const whole = makePdf(['alpha']);
  const loop = Buffer.from(whole.toString('latin1').replace('/Kids [', '/Kids [2 0 R '), 'latin1');
  for (const bytes of [
    Buffer.from(''),
    Buffer.from('%PDF-1.7'),
    whole.subarray(0, 100),
    Buffer.alloc(5_000, 7),
  ]) {
    t.deepEqual(read(bytes), { fault: 'unreadable' });
  }
  t.truthy(read(loop));
  t.like(read(whole), { pages: 1 });
});

test('only the words of an office document are read, not its tags', (t) => {
  const zip = makeZip({
    'word/document.xml': Buffer.from('<w:p><w:t>Some words</w:t> <w:t>more</w:t></w:p>'),
    'word/media/a.png': Buffer.alloc(1_000, 1),
  });
  t.deepEqual(read(zip, { kind: 'zip' }), {
    texts: [{ text: 'Some words more', times: 1 }],
    pages: 0,
    otherTokens: 0,
  });
});

test('an archive that unpacks to more than the limit is too large, and a damaged one is unreadable', (t) => {
  const large = makeZip({ 'a.xml': Buffer.alloc(80_000_000, '<') });
  t.deepEqual(read(large, { kind: 'zip' }), { fault: 'too_large' });
  t.deepEqual(read(Buffer.from('PK\u0003\u0004'), { kind: 'zip' }), { fault: 'unreadable' });
  t.deepEqual(read(large.subarray(0, -30), { kind: 'zip' }), { fault: 'unreadable' });
});

test('text outside plain tags is read: CDATA sections, other encodings, and parts with any name', (t) => {
  const document = '<w:t>one <![CDATA[two <b> three]]> four</w:t> a < five > six';
  const utf16 = Buffer.from(`\ufeff${document}`, 'utf16le');
  const big = Buffer.from(utf16).swap16();
  const zip = makeZip({
    'word/document.xml': Buffer.from(document),
    'word/document.bin': Buffer.from(document),
    'word/media/a.png': utf16,
    'word/media/b.png': big,
    'word/media/c.png': Buffer.alloc(1_000, 1),
  });
  const result = read(zip, { kind: 'zip' });
  for (const word of 'one two three four five six'.split(' ')) t.is(countTimes(result, word), 4, word);
});

test('a document with entities that could expand to more text is unreadable', (t) => {
  const document = '<!DOCTYPE a [<!ENTITY b "words and words">]><a>&b;&b;</a>';
  const zip = makeZip({ 'word/document.xml': Buffer.from(document) });
  t.deepEqual(read(zip, { kind: 'zip' }), { fault: 'unreadable' });
});

test('if other readers would locate the directory of an archive elsewhere, the archive is unreadable', (t) => {
  const entries = { 'word/document.xml': Buffer.from('<w:t>words</w:t>') };
  const whole = makeZip(entries);
  const change = (edit: (end: Buffer) => void): Buffer => {
    const changed = Buffer.from(whole);
    edit(changed.subarray(-22));
    return changed;
  };
  for (const archive of [
    // Python locates the directory by its length, not by the number of entries.
    change((end) => end.writeUInt16LE(0, 10)),
    change((end) => end.writeUInt32LE(0, 12)),
    change((end) => end.writeUInt32LE(end.readUInt32LE(16) + 1, 16)),
    // An archive may have a prefix: its offsets are relative to the start of the archive.
    Buffer.concat([Buffer.from('%PDF-1.4'), whole]),
    Buffer.concat([whole, Buffer.from('more')]),
  ]) {
    t.deepEqual(read(archive, { kind: 'zip' }), { fault: 'unreadable' });
  }
  t.like(read(whole, { kind: 'zip' }), { texts: [{ text: 'words', times: 1 }] });
});

test('a spreadsheet string is included once for each cell that shows it', (t) => {
  const makeSheet = (cells: string): Buffer =>
    makeZip({
      'xl/worksheets/sheet1.xml': Buffer.from(`<worksheet><row>${cells}</row></worksheet>`),
      'xl/sharedStrings.xml': Buffer.from('<sst><si><t>first</t></si><si><r><t>second</t></r></si></sst>'),
    });
  const sheet = makeSheet(
    `${'<c r="A1" t="s"><v>1</v></c>'.repeat(1_000)}<c><v>7</v></c><x:c t='&#115;'><x:v>0</x:v></x:c>`,
  );
  const result = read(sheet, { kind: 'zip' });
  t.is(countTimes(result, 'second'), 1_000);
  t.is(countTimes(result, 'first'), 1);
  t.deepEqual(read(sheet, { kind: 'zip', maxCharacters: 5_000 }), { fault: 'too_long' });
  for (const value of ['2', 'x', '']) {
    const bad = makeSheet(`<c t="s"><v>${value}</v></c>`);
    t.deepEqual(read(bad, { kind: 'zip' }), { fault: 'unreadable' }, value);
  }
});
