import test from 'ava';
import type { DocumentAnswer, DocumentRequest } from '../../../api/files/file-content.ts';
import { loadPdfium } from '../../../api/files/pdf-text.ts';
import { readDocument } from '../../../api/files/read-file.ts';
import { makePdf } from '../../support/make-pdf.ts';
import { makeZip } from '../../support/make-zip.ts';

const pdfium = await loadPdfium();

function read(bytes: Buffer, options: Partial<Omit<DocumentRequest, 'bytes'>> = {}): DocumentAnswer {
  return readDocument(pdfium, { kind: 'pdf', maxCharacters: 4_000_000, maxPages: 1_000, ...options, bytes });
}

/** The texts of an answer, each as often as it is shown. */
function listTexts(answer: DocumentAnswer): string[] {
  if ('fault' in answer) throw new Error(`the document is ${answer.fault}`);
  return answer.texts.flatMap(({ text, times }) => Array.from({ length: times }, () => text));
}

function countTimes(answer: DocumentAnswer, word: string): number {
  if ('fault' in answer) throw new Error(`the document is ${answer.fault}`);
  return answer.texts.reduce((sum, { text, times }) => sum + (text.split(word).length - 1) * times, 0);
}

test('the text of every page is read, also what stands beyond its edge and what a form repeats', (t) => {
  const answer = read(makePdf(['alpha', 'beta'], { repeat: 100, form: { text: 'gamma', paints: 5 } }));
  t.like(answer, { pages: 2 });
  const texts = listTexts(answer);
  for (const [index, word] of ['alpha', 'beta'].entries()) {
    t.is(texts[index]!.split(word).length - 1, 100);
    t.is(texts[index]!.split('gamma').length - 1, 500);
  }
});

test('a PDF of more pages or characters than were asked for is too long', (t) => {
  t.deepEqual(read(makePdf(['a', 'b', 'c']), { maxPages: 2 }), { fault: 'too_long' });
  t.deepEqual(read(makePdf(['one', 'two'], { repeat: 100 }), { maxCharacters: 600 }), {
    fault: 'too_long',
  });
});

test('a PDF that says it has other pages than its tree has is read along its tree', (t) => {
  for (const count of [1, 99, 1_000, -1]) {
    const answer = read(makePdf(['alpha'], { count, listed: 100 }));
    t.like(answer, { pages: 100 }, `says ${count}`);
    const texts = listTexts(answer);
    t.is(texts.join(' ').split('alpha').length - 1, 100);
  }
  t.like(read(makePdf(['alpha', 'beta'], { count: 3 })), { pages: 2 });
  const long = makePdf(['alpha'], { count: 1, listed: 100 });
  t.deepEqual(read(long, { maxPages: 99 }), { fault: 'too_long' });
});

test('what is no PDF, is cut or leads back to itself is unreadable, and ends nobody', (t) => {
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

test('of an office document the words are read, without its tags', (t) => {
  const zip = makeZip({
    'word/document.xml': Buffer.from('<w:p><w:t>Some words</w:t> <w:t>more</w:t></w:p>'),
    'word/media/a.png': Buffer.alloc(1_000, 1),
  });
  t.deepEqual(read(zip, { kind: 'zip' }), {
    texts: [{ text: 'Some words more', times: 1 }],
    pages: 0,
    tokens: 0,
  });
});

test('an archive that unpacks to more than may be is too large, and a damaged one unreadable', (t) => {
  const large = makeZip({ 'a.xml': Buffer.alloc(80_000_000, '<') });
  t.deepEqual(read(large, { kind: 'zip' }), { fault: 'too_large' });
  t.deepEqual(read(Buffer.from('PK\u0003\u0004'), { kind: 'zip' }), { fault: 'unreadable' });
  t.deepEqual(read(large.subarray(0, -30), { kind: 'zip' }), { fault: 'unreadable' });
});

test('text counts that is not between plain tags: sections of raw text, other encodings, parts of any name', (t) => {
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
  const answer = read(zip, { kind: 'zip' });
  for (const word of 'one two three four five six'.split(' ')) t.is(countTimes(answer, word), 4, word);
});

test('a document that may stand for more text than it holds is unreadable', (t) => {
  const document = '<!DOCTYPE a [<!ENTITY b "words and words">]><a>&b;&b;</a>';
  const zip = makeZip({ 'word/document.xml': Buffer.from(document) });
  t.deepEqual(read(zip, { kind: 'zip' }), { fault: 'unreadable' });
});

test('an archive that other readers find another directory in is unreadable', (t) => {
  const entries = { 'word/document.xml': Buffer.from('<w:t>words</w:t>') };
  const whole = makeZip(entries);
  const change = (edit: (end: Buffer) => void): Buffer => {
    const changed = Buffer.from(whole);
    edit(changed.subarray(-22));
    return changed;
  };
  for (const archive of [
    // Python reads the directory by its length, and not by the number of entries.
    change((end) => end.writeUInt16LE(0, 10)),
    change((end) => end.writeUInt32LE(0, 12)),
    change((end) => end.writeUInt32LE(end.readUInt32LE(16) + 1, 16)),
    // In front of an archive there may be anything: its places count from where it begins.
    Buffer.concat([Buffer.from('%PDF-1.4'), whole]),
    Buffer.concat([whole, Buffer.from('more')]),
  ]) {
    t.deepEqual(read(archive, { kind: 'zip' }), { fault: 'unreadable' });
  }
  t.like(read(whole, { kind: 'zip' }), { texts: [{ text: 'words', times: 1 }] });
});

test('a text of a spreadsheet counts for each cell that shows it', (t) => {
  const makeSheet = (cells: string): Buffer =>
    makeZip({
      'xl/worksheets/sheet1.xml': Buffer.from(`<worksheet><row>${cells}</row></worksheet>`),
      'xl/sharedStrings.xml': Buffer.from('<sst><si><t>first</t></si><si><r><t>second</t></r></si></sst>'),
    });
  const sheet = makeSheet(
    `${'<c r="A1" t="s"><v>1</v></c>'.repeat(1_000)}<c><v>7</v></c><x:c t='&#115;'><x:v>0</x:v></x:c>`,
  );
  const answer = read(sheet, { kind: 'zip' });
  t.is(countTimes(answer, 'second'), 1_000);
  t.is(countTimes(answer, 'first'), 1);
  t.deepEqual(read(sheet, { kind: 'zip', maxCharacters: 5_000 }), { fault: 'too_long' });
  for (const value of ['2', 'x', '']) {
    const bad = makeSheet(`<c t="s"><v>${value}</v></c>`);
    t.deepEqual(read(bad, { kind: 'zip' }), { fault: 'unreadable' }, value);
  }
});
