/**
 * Entry point of the thread that reads documents. What a document does to it (time, memory, a fault of the reader) ends
 * the thread and nothing else.
 */
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import type { DocumentAnswer, DocumentReply, DocumentRequest } from './file-content.ts';
import { boundWasmMemory, loadPdfium, readPdf } from './pdf-text.ts';
import { readXls } from './xls-text.ts';
import { readZip } from './zip-text.ts';

const maxWasmBytes = 512 * 1024 * 1024;
const documentNiceness = 5;

const port = parentPort;
if (port === null) throw new Error('document-thread is started as a worker thread');

// On Linux a priority is a thread's own: requests of the process go before documents.
if (process.platform === 'linux') setPriority(documentNiceness);
boundWasmMemory(maxWasmBytes);
const pdfium = await loadPdfium();

function read({ kind, bytes, maxCharacters, maxPages }: DocumentRequest): DocumentAnswer {
  if (kind === 'pdf') return readPdf(pdfium, { bytes, maxCharacters, maxPages });
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return kind === 'zip' ? readZip(buffer, maxCharacters) : readXls(buffer, maxCharacters);
}

port.on('message', (request: DocumentRequest) => {
  const reply: DocumentReply = { answer: read(request), memoryBytes: pdfium.HEAPU8.length };
  port.postMessage(reply);
});
