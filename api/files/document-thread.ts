/**
 * Entry point of the thread that reads and counts files. What a document does to it (time, memory, a fault of the reader)
 * ends the thread and nothing else.
 */
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import type { FileReply, FileRequest } from './file-content.ts';
import { boundWasmMemory, loadPdfium } from './pdf-text.ts';
import { countFile } from './read-file.ts';

const maxWasmBytes = 512 * 1024 * 1024;
const documentNiceness = 5;

const port = parentPort;
if (port === null) throw new Error('document-thread is started as a worker thread');

// On Linux a priority is a thread's own: requests of the process go before documents.
if (process.platform === 'linux') setPriority(documentNiceness);
boundWasmMemory(maxWasmBytes);
const pdfium = await loadPdfium();

port.on('message', (request: FileRequest) => {
  void (async () => {
    const answer = await countFile(pdfium, request);
    const reply: FileReply = { answer, memoryBytes: pdfium.HEAPU8.length };
    port.postMessage(reply);
  })();
});
