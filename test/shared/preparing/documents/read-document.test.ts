import test from 'ava';
import type { DocumentResult, DocumentRequest } from '../../../../shared/preparing/documents/file-content.ts';
import { loadPdfium, readPdf } from '../../../../shared/preparing/documents/pdf-text.ts';
import { makePdf } from '../../../support/make-pdf.ts';

const pdfium = await loadPdfium();

function read(bytes: Buffer, options: Partial<Omit<DocumentRequest, 'bytes'>> = {}): DocumentResult {
  return readPdf(pdfium, { maxCharacters: 4_000_000, maxPages: 1_000, ...options, bytes });
}

function listTexts(result: DocumentResult): readonly string[] {
  if ('fault' in result) throw new Error(`the document is ${result.fault}`);
  return result.texts;
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
