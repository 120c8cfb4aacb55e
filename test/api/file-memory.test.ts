import { once } from 'node:events';
import test from 'ava';
import { readRssMb } from '../../scripts/bench/harness/clocks/rss-clock.ts';
import { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { startUpload } from '../support/uploads.ts';
import { useStack } from '../support/stack.ts';
import { startRole } from '../support/worker-process.ts';

/** Can be set, to measure larger files. */
const fileMb = Number(process.env['TEST_FILE_MB'] ?? 60);
const text = 'The quick brown fox jumps over the lazy dog. '.repeat(80);

/** Lines of about 4 KB. */
const createLines = (from: number, count: number): string =>
  Array.from(
    { length: count },
    (_, i) =>
      `${JSON.stringify({ custom_id: `${from + i}`, body: { model: 'use-lite-en-512', input: text } })}\n`,
  ).join('');

const form = 'content-disposition: form-data; name=';

/** Sends a file of this size. @returns the status of the response */
async function send(url: string, apiKey: string, megabytes: number): Promise<number> {
  const { request, answer } = startUpload(`${url}/v1/files`, apiKey, {
    'content-type': 'multipart/form-data; boundary=x',
    'transfer-encoding': 'chunked',
  });
  request.write(`--x\r\n${form}"file"; filename="a.jsonl"\r\n\r\n`);
  let line = 0;
  for (let sent = 0; sent < megabytes * 1_000_000;) {
    const lines = createLines(line, 16);
    line += 16;
    sent += lines.length;
    // A response before the end is an error.
    if (!request.write(lines)) await Promise.race([once(request, 'drain'), answer]);
    if (request.destroyed) break;
  }
  request.end(`\r\n--x\r\n${form}"purpose"\r\n\r\nbatch\r\n--x--\r\n`);
  return (await answer).status;
}

test('an upload takes a few megabytes of the api’s memory, however large it is', async (t) => {
  t.timeout(300_000);
  const stack = await useStack(t, { workers: [] });
  const objects = new ObjectStore(stack.config.s3);
  await objects.prepareBucket();
  objects.close();
  const api = await startRole(t, 'api', stack.env);
  const url = String(api.readyLine['url']);
  const { apiKey } = await stack.createAccount();
  // Loads the tokenizer, and grows the heap to what any request may take.
  t.is(await send(url, apiKey, 15), 200);
  const before = readRssMb(api.child.pid!);
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, readRssMb(api.child.pid!));
  }, 20);
  t.teardown(() => clearInterval(timer));
  const startedMs = performance.now();
  t.is(await send(url, apiKey, fileMb), 200);
  clearInterval(timer);
  const seconds = (performance.now() - startedMs) / 1_000;
  t.log(`${fileMb} MB in ${seconds.toFixed(1)} s: from ${before.toFixed(0)} to ${peak.toFixed(0)} MB`);
  t.true(peak - before < 45, `${peak - before} MB more`);
});
