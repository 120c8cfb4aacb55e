/** Entry point of an encoder's thread: one batch of texts in, the buffer of their vectors out, one at a time. */
import { parentPort } from 'node:worker_threads';
import { loadSentenceModel } from './sentence-model.ts';

const port = parentPort;
if (port === null) throw new Error('encoder-thread is started as a worker thread');

// Whatever fails, at loading or later, ends the thread: WebAssembly that ran out of memory once is of no more use,
// and the pool gives the batch to a new thread.
const model = await loadSentenceModel();

port.on('message', (texts: readonly string[]) => {
  void answer(texts);
});

async function answer(texts: readonly string[]): Promise<void> {
  const { buffer } = await model.encode(texts);
  port?.postMessage(buffer, [buffer]);
}
