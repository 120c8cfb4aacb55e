/**
 * Entry point of an encoder thread. Posts null when it is ready, and then, for each batch of texts, the buffer with
 * their vectors, in the order of the batches.
 */
import { parentPort } from 'node:worker_threads';
import { loadSentenceModel } from './sentence-model.ts';

const port = parentPort;
if (port === null) throw new Error('encoder-thread is started as a worker thread');

// Any failure, while loading or later, ends the thread, because WebAssembly that ran out of memory is unusable. The
// pool gives the batch to a new thread.
const model = await loadSentenceModel();

port.on('message', (texts: readonly string[]) => {
  const { buffer } = model.encode(texts);
  port.postMessage(buffer, [buffer]);
});
port.postMessage(null);
