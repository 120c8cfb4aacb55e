import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import { type ExecutionContext } from 'ava';
import { launchBrowser, withBrowser } from '../support/browser.ts';
import { useStack } from '../support/stack.ts';

/** Pages of other origins call the gateway in a real browser, because the browser decides what they may read. */

const sdkFolder = 'node_modules/openai';

/** Serves an empty page, and the official SDK from its package. @returns the port */
async function servePage(t: ExecutionContext): Promise<number> {
  const server = createServer((request, response) => {
    const path = normalize(request.url ?? '/');
    if (!path.startsWith('/openai/')) {
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>A page</title>');
      return;
    }
    readFile(join(sdkFolder, path.slice('/openai/'.length))).then(
      (script) => response.setHeader('content-type', 'text/javascript').end(script),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** The page's script, which runs in the browser. */
const useSdk = `async ({ baseURL, apiKey, wrongKey }) => {
  const { OpenAI } = await import('/openai/index.mjs');
  const options = { baseURL, dangerouslyAllowBrowser: true, maxRetries: 0 };
  const client = new OpenAI({ ...options, apiKey });
  const messages = [{ role: 'user', content: 'Hello from a page!' }];
  const chat = { model: 'demo-echo', messages };
  const whole = await client.chat.completions.create(chat, { idempotencyKey: 'from-a-page' }).withResponse();
  let streamed = '';
  for await (const chunk of await client.chat.completions.create({ ...chat, stream: true })) {
    streamed += chunk.choices[0]?.delta.content ?? '';
  }
  const error = await new OpenAI({ ...options, apiKey: wrongKey }).chat.completions.create(chat).catch((thrown) => thrown);
  return {
    requestId: whole.request_id,
    remaining: whole.response.headers.get('x-ratelimit-remaining-requests'),
    answer: whole.data.choices[0].message.content,
    streamed,
    error: { status: error.status, code: error.code, requestId: error.requestID },
  };
}`;

interface PageResult {
  readonly requestId: string;
  readonly remaining: string;
  readonly answer: string;
  readonly streamed: string;
  readonly error: { readonly status: number; readonly code: string; readonly requestId: string };
}

withBrowser(
  'the official SDK works on a page of an allowed origin, including streams and errors',
  async (t) => {
    const port = await servePage(t);
    const stack = await useStack(t, { env: { CORS_ORIGINS: `http://localhost:${port}` } });
    const { apiKey } = await stack.createAccount();
    const browser = await launchBrowser();
    t.teardown(() => browser.close());
    const page = await browser.newPage();
    await page.goto(`http://localhost:${port}/`);
    const call = { baseURL: `${stack.url}/v1`, apiKey, wrongKey: `mg-${'x'.repeat(43)}` };
    const seen = await page.evaluate<PageResult>(`(${useSdk})(${JSON.stringify(call)})`);
    t.regex(seen.answer, /Hello from a page!/);
    t.is(seen.streamed, seen.answer);
    t.regex(seen.requestId, /^[0-9a-f-]{36}$/);
    t.regex(seen.remaining, /^\d+$/);
    t.like(seen.error, { status: 401, code: 'invalid_api_key' });
    t.regex(seen.error.requestId, /^[0-9a-f-]{36}$/);
    const readModels = `fetch('${stack.url}/v1/models').then(() => 'read', () => 'refused')`;
    t.is(await page.evaluate<string>(readModels), 'read');
    // The same server, but for the browser another host name is another origin.
    await page.goto(`http://127.0.0.1:${port}/`);
    t.is(await page.evaluate<string>(readModels), 'refused');
  },
);
