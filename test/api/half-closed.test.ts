import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { waitForNoReservation } from '../support/observe.ts';
import { openRaw, sendRaw } from '../support/raw-caller.ts';
import type { RawResponse } from '../support/raw-response.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * Clients that close their side after the request, as `nc -N` and some proxies do, and wait for the response.
 */

let stack: TestStack;
let vendor: VendorSimulator;
let account: TestAccount;

const models = ['whole', 'streamed', 'left', 'old', 'begun'];

test.before(async () => {
  vendor = await startVendorSimulator();
  const catalog = `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendor.url}/v1", disconnectGraceMs: 0 }
models:
${models
  .map(
    (id) =>
      `  - { id: ${id}, type: chat, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: vendor, model: ${id}${id === 'begun' ? '+drip-50' : ''} }] }`,
  )
  .join('\n')}
`;
  stack = await startStack({ catalog });
  account = await stack.createAccount();
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

function createChat(model: string, more: object = {}, version = '1.1'): string {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], ...more });
  return (
    `POST /v1/chat/completions HTTP/${version}\r\nhost: gateway\r\nauthorization: Bearer ${account.apiKey}\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  );
}

/** Returns the response, without the interim responses before it, which every client skips. */
function findFinal(t: ExecutionContext, responses: readonly RawResponse[]): RawResponse {
  const final = responses.filter(({ status }) => status !== 100);
  t.is(final.length, 1);
  t.is(responses.at(-1), final[0]);
  // Some clients fail after more than five interim responses.
  t.true(responses.length <= 6);
  return final[0]!;
}

test('a half-closed client gets complete pages, GET responses and errors', async (t) => {
  const key = `authorization: Bearer ${account.apiKey}\r\n`;
  for (const [line, status] of [
    ['GET /v1/models', 200],
    ['GET /v1/openapi.json', 200],
    ['GET /v1/users/profile', 200],
    ['GET /v1/users/request_logs', 200],
    ['GET /v1/nothing', 404],
  ] as const) {
    for (const version of ['1.0', '1.1']) {
      const request = `${line} HTTP/${version}\r\nhost: gateway\r\n${key}\r\n`;
      const response = findFinal(t, await sendRaw(stack.url, request, { halfClose: true }));
      t.is(response.status, status, line);
      t.notThrows(() => JSON.parse(response.body) as unknown, line);
    }
  }
});

test('all pipelined requests get a response', async (t) => {
  const request = 'GET /v1/models HTTP/1.1\r\nhost: gateway\r\n\r\n';
  const responses = await sendRaw(stack.url, request.repeat(3), { halfClose: true });
  t.deepEqual(
    responses.map(({ status }) => status).filter((status) => status !== 100),
    [200, 200, 200],
  );
});

for (const stream of [false, true]) {
  test(`a half-closed client gets its chat response even if it takes long, ${stream ? 'streamed' : 'not streamed'}`, async (t) => {
    const model = stream ? 'streamed' : 'whole';
    const vendorHold = vendor.hold(model);
    const caller = await openRaw(stack.url);
    caller.socket.end(createChat(model, { stream }));
    const countInterim = (): number => caller.seen().split('100 Continue').length - 1;
    await waitFor('the last of the probes', () => countInterim() === 5 && vendorHold.waiting === 1);
    vendorHold.end();
    const response = findFinal(t, await caller.responses());
    t.is(response.status, 200);
    t.true(response.body.includes(stream ? 'data: [DONE]' : '"finish_reason":"stop"'));
  });
}

test('if the client half-closes after its stream has started, the stream continues to its end', async (t) => {
  const { socket, responses } = await openRaw(stack.url);
  socket.write(createChat('begun', { stream: true }));
  socket.once('data', () => socket.end());
  const [response, ...more] = await responses();
  t.deepEqual(more, []);
  t.is(response?.status, 200);
  t.true(response!.body.trimEnd().endsWith('data: [DONE]'));
});

for (const [name, model, version] of [
  ['if a client disconnects before the response starts, the vendor call is aborted', 'left', '1.1'],
  [
    'if an HTTP/1.0 client half-closes and the response takes a while, it is treated as disconnected',
    'old',
    '1.0',
  ],
] as const) {
  test(name, async (t) => {
    const vendorHold = vendor.hold(model);
    t.teardown(() => vendorHold.end());
    const { socket } = await openRaw(stack.url);
    socket.write(createChat(model, { stream: true }, version));
    await waitFor('the vendor call', () => vendorHold.waiting === 1);
    if (version === '1.0') socket.end();
    else socket.destroy();
    await waitFor('the vendor call to be aborted', () => vendorHold.waiting === 0);
    socket.destroy();
    await waitForNoReservation(stack, account.id);
    t.pass();
  });
}
