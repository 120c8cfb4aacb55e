import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';

/** Measures how responsive a worker is while it handles large jobs. Alone in its file for an accurate measurement. */

const chats = 4;

const threadClock = new URL('../support/thread-clock.js', import.meta.url).href;

const writeProbe = (log: string): string => `
import { appendFileSync } from 'node:fs';
import { readThreadMs } from ${JSON.stringify(threadClock)};
let last = readThreadMs(), longest = 0, stalled = 0;
setInterval(() => {
  const now = readThreadMs();
  const gap = now - last;
  last = now;
  longest = Math.max(longest, gap);
  if (gap > 50) stalled += gap;
}, 5).unref();
process.on('SIGUSR2', () => {
  const { maxRSS } = process.resourceUsage();
  appendFileSync(${JSON.stringify(log)}, [longest, stalled, maxRSS / 1024].map(Math.round).join(' ') + '\\n');
  longest = stalled = 0;
});`;

interface Received {
  readonly url: string;
  readonly declared: number;
  readonly length: number;
}

/** A vendor that reads every request to its end, and rejects it. */
async function startVendor(t: ExecutionContext): Promise<{ port: number; received: Received[] }> {
  const received: Received[] = [];
  const vendor = createServer((request: IncomingMessage, response) => {
    let length = 0;
    request.on('data', (chunk: Buffer) => (length += chunk.length));
    request.on('end', () => {
      received.push({ url: request.url ?? '', declared: Number(request.headers['content-length']), length });
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end('{"error":{"message":"no","type":"invalid_request_error"}}');
    });
  }).listen(0, '127.0.0.1');
  await once(vendor, 'listening');
  t.teardown(() => vendor.close());
  return { port: (vendor.address() as AddressInfo).port, received };
}

/** A nearly incompressible image of almost 20 MB, the maximum. */
async function drawLargest(): Promise<string> {
  const side = 2_500;
  const pixels = Buffer.alloc(side * side * 3, 'noise that is as good as any');
  const raw = { width: side, height: side, channels: 3 } as const;
  const bytes = await sharp(pixels, { raw }).png({ compressionLevel: 0 }).toBuffer();
  return `data:image/png;base64,${bytes.toString('base64')}`;
}

test('a worker stays responsive while it reads, checks and sends the largest chats', async (t) => {
  t.timeout(150_000);
  const { port, received } = await startVendor(t);
  const models = ['openai', 'anthropic', 'gemini'].map(
    (kind) =>
      `  - { id: ${kind}, type: vision, context: 128000, input_modalities: [text, image], pricing: { prompt: 100, completion: 1000 }, routes: [{ upstream: ${kind}, model: m }] }`,
  );
  const stack = await useStack(t, {
    workers: [],
    catalog: `
upstreams:
  openai: { kind: openai, baseUrl: "http://127.0.0.1:${port}/v1", apiKeys: [k] }
  anthropic: { kind: anthropic, baseUrl: "http://127.0.0.1:${port}", apiKeys: [k] }
  gemini: { kind: gemini, baseUrl: "http://127.0.0.1:${port}", apiKeys: [k] }
models:
${models.join('\n')}
`,
  });
  const log = join(stack.dir, 'loop.txt');
  writeFileSync(log, '');
  const probe = join(stack.dir, 'probe.mjs');
  writeFileSync(probe, writeProbe(log));
  const worker = await startRole(t, 'worker', { ...stack.env, NODE_OPTIONS: `--import ${probe}` });
  const readProbe = async (): Promise<number[]> => {
    const before = readFileSync(log, 'utf8').length;
    worker.child.kill('SIGUSR2');
    await waitFor('the probe to report', () => Promise.resolve(readFileSync(log, 'utf8').length > before));
    return readFileSync(log, 'utf8').slice(before).trim().split(' ').map(Number);
  };
  const url = await drawLargest();
  const content = [{ type: 'image_url', image_url: { url } }];
  for (const model of ['openai', 'anthropic', 'gemini']) {
    // Large bodies that are refused slow down their account.
    const account = await stack.createAccount({ balance: '100' });
    const body = JSON.stringify({ model, max_tokens: 16, messages: [{ role: 'user', content }] });
    await readProbe();
    const responses = await Promise.all(
      Array.from({ length: chats }, () => stack.post('/v1/chat/completions', account.apiKey, body)),
    );
    for (const response of responses) t.is(response.status, 400, await response.text());
    const [longestMs, stalledMs, peakMb] = await readProbe();
    t.log(
      `${model}: ${body.length} bytes, longest ${longestMs} ms, stalled ${stalledMs} ms, peak ${peakMb} MB`,
    );
    t.true(stalledMs! < 400, `${model} blocked the worker for ${stalledMs} ms`);
    const sent = received.splice(0);
    t.is(sent.length, chats);
    for (const { declared, length } of sent) {
      t.is(declared, length);
      t.true(length > url.length);
    }
  }
});
