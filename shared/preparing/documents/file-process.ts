/**
 * Entry point of the process that reads and tokenizes files. If a document takes too much time or memory, or crashes
 * the reader, only this process ends. A thread would not suffice, because a thread that allocates too much memory
 * crashes its whole process.
 */
import { serveRequests } from '../../platform/child-processes/serve-requests.ts';
import type { FileReply, FileRequest } from './file-content.ts';
import { boundWasmMemory, loadPdfium } from './pdf-text.ts';
import { countFile } from './read-file.ts';

const maxWasmBytes = 512 * 1024 * 1024;

await serveRequests(async () => {
  boundWasmMemory(maxWasmBytes);
  const pdfium = await loadPdfium();
  return async (request: FileRequest): Promise<FileReply> => ({
    answer: await countFile(pdfium, request),
    memoryBytes: pdfium.HEAPU8.length,
  });
});
