import test from 'ava';
import { DocumentReader } from '../../../../shared/preparing/documents/document-reader.ts';
import type { CountedFile } from '../../../../shared/preparing/documents/file-content.ts';
import { loadPdfium } from '../../../../shared/preparing/documents/pdf-text.ts';
import { readFile as readContent } from '../../../../shared/preparing/documents/read-file.ts';
import { readFiles } from '../../../../shared/preparing/documents/read-files.ts';
import type { CatalogModel } from '../../../../shared/catalog/catalog-schema.ts';
import type { ChatRequest } from '../../../../shared/contract/chat.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { makeBlankPdf, makePdf, toDataUri } from '../../../support/make-pdf.ts';
import { makeZip } from '../../../support/make-zip.ts';

const model = {
  id: 'm',
  context: 128_000,
  tokensPerPage: 258,
  tokensPerImage: 1_445,
  tokenizer: 'o200k_base',
} as CatalogModel;
const pdfium = await loadPdfium();
const documents = new DocumentReader(createLogger('test', 'silent'));
const word = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
const zip = makeZip({ 'word/document.xml': Buffer.from('<w:t>hidden words</w:t>') });

test.after.always(async () => {
  await documents.close();
});

async function readFile(filename: string, mediaType: string, bytes: Buffer): Promise<CountedFile> {
  const file = { filename, file_data: toDataUri(bytes, mediaType) };
  const body = { messages: [{ role: 'user', content: [{ type: 'file', file }] }] } as unknown as ChatRequest;
  const [content] = await readFiles(documents, 'a', body, model, new AbortController().signal);
  return content!;
}

/** The text that is tokenized for a file. */
function read(filename: string, mediaType: string, bytes: Buffer): string {
  const request = { ...model, filename, dataUri: toDataUri(bytes, mediaType), maxTokens: model.context };
  const content = readContent(pdfium, request);
  if ('fault' in content) throw new Error(`the file is ${content.fault}`);
  return content.texts.join(' ');
}

test('pages of an uncompressed PDF are read, even if data precedes the PDF header', async (t) => {
  const blank = makeBlankPdf(200);
  t.false(blank.includes('stream'));
  const shifted = Buffer.concat([Buffer.from('\n'.repeat(1_000)), blank]);
  for (const bytes of [blank, shifted]) {
    t.is((await readFile('a.pdf', 'application/pdf', bytes)).pages, 200);
    t.is((await readFile('a.bin', 'application/octet-stream', bytes)).pages, 200);
  }
  await t.throwsAsync(readFile('a.pdf', 'application/pdf', Buffer.from('%PDF-1.4 nothing but a head')), {
    instanceOf: AppError,
  });
  t.is(
    read('a.md', 'text/markdown', Buffer.from('A PDF begins with %PDF-1.7.')),
    'A PDF begins with %PDF-1.7.',
  );
});

test('a file that starts as a PDF and ends as an archive is rejected, whatever its type and name say', async (t) => {
  const front = makePdf(['front']);
  // Offsets in the archive are relative to the start of the file, as tools that repair prefixed archives write them.
  const shifted = makeZip({ 'word/document.xml': Buffer.from('<w:t>hidden words</w:t>') }, front);
  for (const [name, type] of [
    ['a.docx', word],
    ['a.pdf', 'application/pdf'],
    ['a.bin', 'application/octet-stream'],
  ] as const) {
    for (const bytes of [shifted, Buffer.concat([front, zip])])
      await t.throwsAsync(readFile(name, type, bytes), { message: /cannot be read/ }, name);
  }
  await t.throwsAsync(readFile('a.docx', word, front), { message: /cannot be read/ });
  const attached = Buffer.concat([front, zip, Buffer.from('\nendstream\n')]);
  t.true((await readFile('a.pdf', 'application/pdf', attached)).isComplete);
});

test('a file that may hold more than its text, such as an office document, is not complete', async (t) => {
  const old = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600)]);
  for (const [name, type, bytes] of [
    ['a.docx', word, zip],
    ['a.bin', 'application/octet-stream', zip],
    ['a.bin', 'application/octet-stream', Buffer.concat([Buffer.from([0xff]), zip])],
    ['a.txt', 'text/plain', zip],
    ['a.txt', 'text/plain', Buffer.concat([Buffer.from('some text '), zip])],
    ['a.png', 'image/png', zip],
    ['a.xls', 'application/vnd.ms-excel', old],
    ['a.bin', 'application/octet-stream', old],
    ['a.docx', 'text/plain', Buffer.from('some text')],
    ['a.bin', 'application/octet-stream', Buffer.from([0xff])],
  ] as const)
    t.false((await readFile(name, type, bytes)).isComplete, `${name} ${type}`);
  t.true((await readFile('a.txt', 'text/plain', Buffer.from('PK are two letters'))).isComplete);
  t.like(await readFile('a.png', 'image/png', Buffer.from([0x89])), { isComplete: true, imageTokens: 1_445 });
});

test('a file with a text extension is read as text, even if its first bytes are those of another format', async (t) => {
  const both = Buffer.concat([makePdf(['front']), Buffer.from('\nhidden words')]);
  t.regex(read('a.txt', 'application/octet-stream', both), /hidden words/);
});
