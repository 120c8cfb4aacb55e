import { hideCounts } from '../../../shared/preparing/documents/pdf-copy.ts';
import { loadPdfium } from '../../../shared/preparing/documents/pdf-text.ts';
import { readFile } from '../../../shared/preparing/documents/read-file.ts';
import { readsItems, readsText, type Reader } from '../reader.ts';

const maxSize = 32 * 1024;
const pdfium = await loadPdfium();
const sent = { maxTokens: 1e9, tokensPerPage: 1, tokensPerImage: 1, tokenizer: 'o200k_base' } as const;

const readArchive = (bytes: Buffer): unknown => {
  const dataUri = `data:application/octet-stream;base64,${bytes.toString('base64')}`;
  return readFile(pdfium, { ...sent, filename: 'a.bin', dataUri });
};

/** Readers of the files of a chat. */
export const fileReaders: readonly Reader[] = [
  readsItems('end of an archive', readArchive, {
    'many ends': (count) => Buffer.from('PK\u0005\u0006'.repeat(count), 'latin1'),
    'one byte': (count) => Buffer.alloc(count, 255),
  }),
  readsText('counts of a PDF', (text) => hideCounts(Buffer.from(text)), { maxSize, tokens: ['/Count', '/'] }),
];
