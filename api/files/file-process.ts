/**
 * Entry point of the process that reads and tokenizes files. If a document takes too much time or memory, or crashes
 * the reader, only this process ends. A thread would not suffice, because a thread that allocates too much memory
 * crashes its whole process.
 */
import { on } from 'node:events';
import { setPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { exitOnUncaught } from '../../shared/runtime/exit-on-uncaught.ts';
import type { FileProcessCrash, FileReply, FileRequest } from './file-content.ts';
import { boundWasmMemory, loadPdfium } from './pdf-text.ts';
import { countFile } from './read-file.ts';

const maxWasmBytes = 512 * 1024 * 1024;
/** Lowers the priority of this process, so that the api process, which serves requests, runs first. */
const niceness = 5;
const watchMs = 1_000;

if (process.send === undefined) throw new Error('file-process is started by an api process');

/** Ends this process once its parent has ended for any reason, even while a document is being read. */
function endWithParent(): void {
  const watch = `
    const { workerData } = require('node:worker_threads');
    const end = () => process.ppid === workerData || process.kill(process.pid, 'SIGKILL');
    setInterval(end, ${watchMs});
  `;
  new Worker(watch, { eval: true, workerData: process.ppid, execArgv: [] }).unref();
}

// Stdio is ignored; the parent logs why this process ends.
exitOnUncaught(
  (error, what) =>
    new Promise((resolve) => {
      const crash: FileProcessCrash = { what, error };
      process.send!(crash, resolve);
    }),
);
setPriority(niceness);
endWithParent();
// Ignore signals from the parent's console: the parent decides when this process ends.
process.on('SIGINT', () => undefined).on('SIGTERM', () => undefined);
process.once('disconnect', () => process.exit());
boundWasmMemory(maxWasmBytes);
const pdfium = await loadPdfium();

for await (const [request] of on(process, 'message') as AsyncIterable<[FileRequest]>) {
  const answer = await countFile(pdfium, request);
  const reply: FileReply = { answer, memoryBytes: pdfium.HEAPU8.length };
  process.send(reply);
}
