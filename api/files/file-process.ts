/**
 * Entry point of the process that reads and counts files. What a document does to it (time, memory, a fault of the reader)
 * ends it and nothing else: a thread that allocates too much at once ends its whole process.
 */
import { on } from 'node:events';
import { setPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { exitOnUncaught } from '../../shared/runtime/exit-on-uncaught.ts';
import type { FileProcessFault, FileReply, FileRequest } from './file-content.ts';
import { boundWasmMemory, loadPdfium } from './pdf-text.ts';
import { countFile } from './read-file.ts';

const maxWasmBytes = 512 * 1024 * 1024;
/** Requests go before documents. */
const niceness = 5;
const watchMs = 1_000;

if (process.send === undefined) throw new Error('file-process is started by an api process');

/** A document that takes for ever must not outlive the process that wanted it, however that one ended. */
function endWithParent(): void {
  const watch = `
    const { workerData } = require('node:worker_threads');
    const end = () => process.ppid === workerData || process.kill(process.pid, 'SIGKILL');
    setInterval(end, ${watchMs});
  `;
  new Worker(watch, { eval: true, workerData: process.ppid, execArgv: [] }).unref();
}

// It has no console: its parent logs why it ends.
exitOnUncaught(
  (error, what) =>
    new Promise((resolve) => {
      const fault: FileProcessFault = { what, error };
      process.send!(fault, resolve);
    }),
);
setPriority(niceness);
endWithParent();
// Of the parent's console: the parent decides when this process ends.
process.on('SIGINT', () => undefined).on('SIGTERM', () => undefined);
process.once('disconnect', () => process.exit());
boundWasmMemory(maxWasmBytes);
const pdfium = await loadPdfium();

for await (const [request] of on(process, 'message') as AsyncIterable<[FileRequest]>) {
  const answer = await countFile(pdfium, request);
  const reply: FileReply = { answer, memoryBytes: pdfium.HEAPU8.length };
  process.send(reply);
}
