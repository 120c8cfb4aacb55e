import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { createRandom } from '../../scripts/vendor-simulator/faults.ts';
import { countTokens } from '../../shared/catalog/count-tokens.ts';
import { findRow, readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/** A client that disconnects at a random token pays exactly for what was generated until then. */

const msPerPiece = 4;
const maxReceivedPieces = 200;
const pieceOf = (i: number): string => (i % 7 === 0 ? ' extraordinarily' : ' cat');

/** The number of pieces that the vendor has sent of each response, keyed by prompt text. */
const sentPieces = new Map<string, number>();
let vendor: Server;
let stack: TestStack;

async function startVendor(): Promise<Server> {
  const server = createServer((request, response) => {
    void (async () => {
      let text = '';
      for await (const chunk of request) text += String(chunk);
      const { messages } = JSON.parse(text) as { messages: { content: string }[] };
      const name = messages[0]!.content;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      // The stream never ends by itself; only a disconnect ends it.
      for (let i = 0; !response.destroyed; i++) {
        sentPieces.set(name, i + 1);
        const choices = [{ index: 0, delta: { content: pieceOf(i) }, finish_reason: null }];
        response.write(`data: ${JSON.stringify({ id: 'x', created: 1, model: 'm', choices })}\n\n`);
        await delay(msPerPiece);
      }
    })();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

test.before(async () => {
  vendor = await startVendor();
  const { port } = vendor.address() as AddressInfo;
  stack = await startStack({
    catalog: `
upstreams:
  vendor: { kind: openai, baseUrl: "http://127.0.0.1:${port}/v1", apiKeys: [sk-vendor-key-0123456789] }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: m }] }
`,
  });
});
test.after.always(async () => {
  await stack.close();
  vendor.closeAllConnections();
  vendor.close();
});

const countPieceTokens = (count: number): number =>
  Array.from({ length: count }, (_, i) => countTokens(pieceOf(i))).reduce((sum, tokens) => sum + tokens, 0);

/**
 * Reads a stream until `pieces` pieces have arrived, then disconnects. @returns the request id and the pieces
 * received
 */
async function readAndDisconnect(apiKey: string, name: string, pieces: number): Promise<[string, number]> {
  const caller = new AbortController();
  const response = await fetch(`${stack.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: 'chat', stream: true, messages: [{ role: 'user', content: name }] }),
    signal: caller.signal,
  });
  const reader = response.body!.getReader();
  let text = '';
  const countReceived = (): number => text.split('"content":" ').length - 1;
  while (countReceived() < pieces) {
    const { done, value } = await reader.read();
    if (done) break;
    text += Buffer.from(value).toString();
  }
  caller.abort();
  return [response.headers.get('x-request-id')!, countReceived()];
}

test('after each of twenty random disconnects, the charge is between what the caller received and what the vendor sent', async (t) => {
  const account = await stack.createAccount();
  const random = createRandom(20_261_121);
  const disconnectPoints = Array.from({ length: 20 }, () => 1 + Math.floor(random() * maxReceivedPieces));
  const readers = disconnectPoints.map((cut, i) => readAndDisconnect(account.apiKey, `caller ${i}`, cut));
  const results = await Promise.all(readers);
  await waitForNoReservation(stack, account.id);
  let charged = 0n;
  for (const [i, [requestId, received]] of results.entries()) {
    const row = await findRow(stack, requestId);
    const sent = sentPieces.get(`caller ${i}`)!;
    t.true(received >= disconnectPoints[i]!);
    t.false(row.success);
    t.is(row.errorCode, 'job_cancelled');
    t.true(
      row.completionTokens >= countPieceTokens(received),
      `${row.completionTokens} tokens charged, ${countPieceTokens(received)} received`,
    );
    t.true(
      row.completionTokens <= countPieceTokens(sent),
      `${row.completionTokens} tokens charged, ${countPieceTokens(sent)} sent`,
    );
    t.is(row.costNano, BigInt(row.promptTokens * 7_000 + row.completionTokens * 13_000));
    charged += row.costNano;
  }
  t.is(await readAmountCharged(stack, account.id, '100'), charged);
});
