import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { findKeys } from '../support/all-of-redis.ts';
import { readStoredBytes } from '../support/stored-responses.ts';
import { readAmountCharged, toNano, waitForNoReservation } from '../support/observe.ts';
import { postJson } from '../support/post-json.ts';
import { parseSse, withoutComments } from '../support/sse-events.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { startRole } from '../support/worker-process.ts';

/** Idempotency-Keys across several processes, some of which die. */

interface Setup {
  readonly stack: TestStack;
  readonly vendor: VendorSimulator;
  readonly account: TestAccount;
}

async function setUp(t: ExecutionContext): Promise<Setup> {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: vendorCatalog(vendor.url), workers: [] });
  return { stack, vendor, account: await stack.createAccount() };
}

const createKey = (): Record<string, string> => ({ 'idempotency-key': randomUUID() });

const costOf = (usage: { cost_request?: unknown } | null | undefined): bigint =>
  toNano(Number(usage?.cost_request));

const chats = '/v1/chat/completions';
const text = `${'cat '.repeat(30)}end`;
const stream = {
  model: 'drip-chat',
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: 'user', content: text }],
};

test('a request repeated at a second api process gets the response of the first, during the stream and afterwards', async (t) => {
  const { stack, vendor, account } = await setUp(t);
  await stack.startWorker();
  const other = String((await startRole(t, 'api', stack.env)).readyLine['url']);
  const key = createKey();
  const first = await postJson(`${stack.url}${chats}`, account.apiKey, stream, key);
  const bodies = await Promise.all([
    first.text(),
    postJson(`${other}${chats}`, account.apiKey, stream, key).then((response) => response.text()),
  ]);
  const later = await postJson(`${other}${chats}`, account.apiKey, stream, key);
  t.is(later.headers.get('x-request-id'), first.headers.get('x-request-id'));
  t.is(new Set([...bodies, await later.text()].map(withoutComments)).size, 1);
  t.is(parseSse(bodies[0]).text, `You said: ${text}`);
  t.is(vendor.requests.counters.total, 1);
});

test('if the api process that owns a request is killed midway, a repeated request at another api process gets the whole response', async (t) => {
  const { stack, vendor, account } = await setUp(t);
  await stack.startWorker();
  const owner = await startRole(t, 'api', stack.env);
  const key = createKey();
  const first = await postJson(`${String(owner.readyLine['url'])}${chats}`, account.apiKey, stream, key);
  await first.body!.getReader().read();
  const attached = await postJson(`${stack.url}${chats}`, account.apiKey, stream, key);
  t.is(attached.headers.get('idempotent-replayed'), 'true');
  await owner.kill();
  const replayed = parseSse(await attached.text());
  t.true(replayed.isDone);
  t.is(replayed.text, `You said: ${text}`);
  t.is(vendor.requests.counters.total, 1);
  await waitForNoReservation(stack, account.id);
  t.is(
    await readAmountCharged(stack, account.id, '100'),
    costOf(replayed.events.find((event) => event.usage)?.usage),
  );
});

test('if the api process of a resumable stream is killed midway, its reader continues at another one', async (t) => {
  const { stack, vendor, account } = await setUp(t);
  await stack.startWorker();
  const owner = await startRole(t, 'api', stack.env);
  const ask = (): Promise<Response> =>
    postJson(`${String(owner.readyLine['url'])}${chats}`, account.apiKey, stream, {
      'x-on-disconnect': 'continue',
    });
  // On a busy machine, a store may not respond in time to a process that has just started.
  let first = await ask();
  for (let retries = 0; first.status === 503 && retries < 3; retries++) first = await ask();
  const reader = first.body!.getReader();
  let seen = '';
  while (!seen.includes('id: 5.')) {
    const { value } = await reader.read();
    if (value === undefined) throw new Error(`the stream ended early, with ${first.status}: ${seen}`);
    seen += Buffer.from(value).toString();
  }
  await owner.kill();
  // The last event may be incomplete.
  const complete = seen.slice(0, seen.lastIndexOf('\n\n') + 2);
  const lastId = [...complete.matchAll(/^id: (\S+)$/gm)].at(-1)![1]!;
  const rest = await fetch(`${stack.url}/v1/jobs/${first.headers.get('x-request-id')}/stream`, {
    headers: { authorization: `Bearer ${account.apiKey}`, 'last-event-id': lastId },
  });
  const whole = parseSse(complete + (await rest.text()));
  t.true(whole.isDone);
  t.is(whole.text, `You said: ${text}`);
  t.is(vendor.requests.counters.total, 1);
  await waitForNoReservation(stack, account.id);
  t.is(
    await readAmountCharged(stack, account.id, '100'),
    costOf(whole.events.find((event) => event.usage)?.usage),
  );
});

for (const { kind, path, body } of [
  { kind: 'image', path: '/v1/images/generations', body: { model: 'slow-image', prompt: 'a red fox' } },
  { kind: 'embedding', path: '/v1/embeddings', body: { model: 'slow-embedding', input: 'one two' } },
]) {
  test(`if an api process is killed during an ${kind}, another api process can replay the response`, async (t) => {
    const { stack, vendor, account } = await setUp(t);
    await stack.startWorker();
    const owner = await startRole(t, 'api', stack.env);
    const key = createKey();
    const first = postJson(`${String(owner.readyLine['url'])}${path}`, account.apiKey, body, key);
    await vendor.requests.waitFor(() => true);
    await owner.kill();
    await t.throwsAsync(first);
    const again = await postJson(`${stack.url}${path}`, account.apiKey, body, key);
    t.is(again.status, 200);
    t.is(again.headers.get('idempotent-replayed'), 'true');
    const { usage } = (await again.json()) as { usage: object };
    t.is(vendor.requests.counters.total, 1);
    t.is(await readAmountCharged(stack, account.id, '100'), costOf(usage));
  });
}

for (const { kind, path, body } of [
  { kind: 'chat', path: chats, body: { model: 'slow-chat', messages: [{ role: 'user', content: 'a b c' }] } },
  { kind: 'image', path: '/v1/images/generations', body: { model: 'slow-image', prompt: 'a red fox' } },
]) {
  test(`if the worker is killed before any output, both callers of one ${kind} get the same response`, async (t) => {
    const { stack, vendor, account } = await setUp(t);
    const worker = await startRole(t, 'worker', stack.env);
    const key = createKey();
    const pending = [
      postJson(`${stack.url}${path}`, account.apiKey, body, key),
      postJson(`${stack.url}${path}`, account.apiKey, body, key),
    ];
    await vendor.requests.waitFor(() => true);
    await worker.kill();
    await stack.startWorker();
    const [first, second] = await Promise.all(pending);
    t.is(first!.status, 200);
    const bodies = await Promise.all([first!.text(), second!.text()]);
    t.is(bodies[0], bodies[1]);
    const { usage } = JSON.parse(bodies[0]) as { usage: object };
    t.is(await readAmountCharged(stack, account.id, '100'), costOf(usage));
    await waitForNoReservation(stack, account.id);
  });
}

test('if the worker of a stream is killed midway, both readers get an error, the output is charged once, and the key can be used again', async (t) => {
  const { stack, account } = await setUp(t);
  const worker = await startRole(t, 'worker', stack.env);
  const key = createKey();
  const first = await postJson(`${stack.url}${chats}`, account.apiKey, stream, key);
  const second = await postJson(`${stack.url}${chats}`, account.apiKey, stream, key);
  const reader = second.body!.getReader();
  const head = await reader.read();
  await worker.kill();
  const chunks = [Buffer.from(head.value)];
  for (let next = await reader.read(); !next.done; next = await reader.read())
    chunks.push(Buffer.from(next.value));
  for (const body of [await first.text(), Buffer.concat(chunks).toString()]) {
    const { events, isDone } = parseSse(body);
    t.false(isDone);
    t.is(events.at(-1)?.error?.code, 'upstream_error');
  }
  await waitForNoReservation(stack, account.id);
  const charged = await readAmountCharged(stack, account.id, '100');
  t.true(charged > 0n);
  t.is((await findKeys(stack.redis, redisKeys.claim(account.id, '*'))).length, 0);
  await stack.startWorker();
  const again = await postJson(`${stack.url}${chats}`, account.apiKey, stream, key);
  t.is(again.headers.get('idempotent-replayed'), null);
  t.true(parseSse(await again.text()).isDone);
});

/** An object store that accepts data and never replies. @returns its endpoint, and a promise for the first upload */
async function startSilentObjectStore(
  t: ExecutionContext,
): Promise<{ readonly endpoint: string; readonly upload: Promise<void> }> {
  const sockets: Socket[] = [];
  let onUpload = (): void => undefined;
  const upload = new Promise<void>((resolve) => {
    onUpload = resolve;
  });
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      if (bytes.toString('latin1').includes('/answers/')) onUpload();
    });
  }).listen(0, '127.0.0.1');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server, 'listening');
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, upload };
}

test('if a worker is killed while copying a long stream to the object store, the stream is replayed from Redis', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const { endpoint, upload } = await startSilentObjectStore(t);
  const stack = await useStack(t, {
    catalog: vendorCatalog(vendor.url),
    env: { S3_ENDPOINT: endpoint },
    workers: [],
  });
  const account = await stack.createAccount();
  const worker = await startRole(t, 'worker', stack.env);
  const key = createKey();
  const long = {
    ...stream,
    model: 'chat',
    messages: [{ role: 'user', content: 'cat '.repeat(1_000) }],
  };
  const first = await postJson(`${stack.url}${chats}`, account.apiKey, long, key);
  const body = await first.text();
  t.true(parseSse(body).isDone);
  await upload;
  await worker.kill();
  const again = await postJson(`${stack.url}${chats}`, account.apiKey, long, key);
  t.is(again.headers.get('idempotent-replayed'), 'true');
  t.true(withoutComments(await again.text()) === withoutComments(body));
  t.is(vendor.requests.counters.total, 1);
  const frames = redisKeys.storedFrames(account.id, first.headers.get('x-request-id')!);
  const { sum } = await readStoredBytes(stack.redis, account.id);
  t.is(
    sum,
    await stack.redis.strlen(frames),
    'the stream counts against the limit for as long as Redis stores it',
  );
  t.true((await stack.redis.ttl(frames)) > 0);
  await waitForNoReservation(stack, account.id);
});
