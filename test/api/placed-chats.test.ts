import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { findRow, readAmountCharged, toNano, waitForNoReservation } from '../support/observe.ts';
import { startOtherApi } from '../support/other-api.ts';
import { postJson } from '../support/post-json.ts';
import { readSse } from '../support/sse-events.ts';
import { useStack, type StackOptions, type TestAccount, type TestStack } from '../support/stack.ts';
import { startRedisProxy } from '../support/store-proxies.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { waitFor } from '../support/wait-for.ts';
import { watchRedis } from '../support/watch-redis.ts';

/** On a single Redis server, a chat is pushed to the workers in the step that admits it. */

interface Setup {
  readonly vendor: VendorSimulator;
  readonly stack: TestStack;
  readonly account: TestAccount;
}

async function setUp(t: ExecutionContext, options: StackOptions = {}): Promise<Setup | null> {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: vendorCatalog(vendor.url), ...options });
  if (stack.redis.isCluster) {
    t.pass('in a Cluster, the queue is on another node than most accounts');
    return null;
  }
  return { vendor, stack, account: await stack.createAccount() };
}

/** Another api process of the stack, whose Redis replies can be held back. */
async function startHeldApi(
  t: ExecutionContext,
  stack: TestStack,
): Promise<{ readonly url: string; readonly proxy: TcpProxy }> {
  const { proxy, url } = await startRedisProxy(stack.env['REDIS_URL']!);
  t.teardown(() => proxy.close());
  const api = await startOtherApi(t, stack, { REDIS_URL: url });
  // Loads the scripts.
  const { apiKey } = await stack.createAccount();
  const first = await postJson(`${api}/v1/chat/completions`, apiKey, chatOf('hello'));
  t.is(first.status, 200);
  await first.text();
  return { proxy, url: api };
}

const chatOf = (content: string, more: object = {}) => ({
  model: 'chat',
  messages: [{ role: 'user', content }],
  ...more,
});

test('a chat is admitted and pushed by one command, whether its account has few or many chats in flight', async (t) => {
  const setup = await setUp(t, { workers: [] });
  if (setup === null) return;
  const { stack, account } = setup;
  const commands = await watchRedis(t, stack.env['REDIS_URL']!);
  const lengths = (): Promise<number[]> =>
    Promise.all([redisKeys.readyQueue, redisKeys.bulkReadyQueue].map((list) => stack.redis.llen(list)));
  const caller = new AbortController();
  const send = async (name: string, expected: readonly number[]): Promise<void> => {
    const chat = fetch(`${stack.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
      body: JSON.stringify(chatOf(name)),
      signal: caller.signal,
    });
    chat.catch(() => undefined);
    await waitFor('the chat to be pushed', async () => (await lengths()).join() === expected.join());
  };
  // The first chat of each lane also loads the scripts, and looks up how many slots the workers have.
  for (let i = 1; i <= 16; i += 1) await send(`quick-${i}`, [i, 0]);
  for (let i = 1; i <= 4; i += 1) await send(`bulk-${i}`, [16, i]);
  const namesOf = (chat: string): string[] =>
    commands
      .filter(({ args }) => args.includes(`\\"${chat}\\"`) || args.includes(`\\\\\\"${chat}\\\\\\"`))
      .map(({ name }) => name);
  await waitFor('the commands of the last chat', () => namesOf('bulk-4').length > 0);
  t.deepEqual(namesOf('quick-16'), ['evalsha']);
  t.deepEqual(namesOf('bulk-4'), ['evalsha']);
  const push = commands.find(({ args }) => args.includes('bulk-4'))!;
  t.true(push.args.includes(redisKeys.account(account.id)), 'the same command reads the account');
  caller.abort();
  await waitForNoReservation(stack, account.id);
});

for (const stream of [false, true]) {
  test(`a ${stream ? 'stream' : 'response'} that arrives before the reply to its admission is complete, has the rate limit headers, and is charged once`, async (t) => {
    const setup = await setUp(t);
    if (setup === null) return;
    const { stack, account } = setup;
    const { proxy, url } = await startHeldApi(t, stack);
    proxy.hold('three marked words');
    const pending = postJson(
      `${url}/v1/chat/completions`,
      account.apiKey,
      chatOf('three marked words', { stream, ...(stream && { stream_options: { include_usage: true } }) }),
    );
    // The worker is done with the chat.
    await waitFor('the charge', async () => (await readAmountCharged(stack, account.id, '100')) > 0n);
    await waitForNoReservation(stack, account.id);
    proxy.release();
    const response = await pending;
    t.is(response.status, 200);
    t.is(response.headers.get('x-ratelimit-limit-requests'), '100000');
    t.is(response.headers.get('x-ratelimit-remaining-requests'), '99999');
    const { costRub, text } = await read(response, stream);
    t.is(text, 'You said: three marked words');
    const charged = await readAmountCharged(stack, account.id, '100');
    t.is(toNano(costRub), charged);
    t.is((await findRow(stack, response.headers.get('x-request-id')!)).costNano, charged);
  });
}

interface Answer {
  readonly text: string;
  readonly costRub: number;
}

async function read(response: Response, stream: boolean): Promise<Answer> {
  if (stream) {
    const { text, events } = await readSse(response);
    const last = events.findLast(({ usage }) => usage !== undefined && usage !== null);
    return { text, costRub: Number(last!.usage!['cost_request']) };
  }
  const { choices, usage } = (await response.json()) as {
    choices: { message: { content: string } }[];
    usage: { cost_request: number };
  };
  return { text: choices[0]!.message.content, costRub: usage.cost_request };
}

for (const { what, model, content, more } of [
  { what: 'a response that is already complete', model: 'chat', content: 'three lost words', more: {} },
  // At five words per second, it takes longer than the api waits for a reply of Redis.
  {
    what: 'a stream that is under way',
    model: 'drip-chat',
    content: `lost${' word'.repeat(35)}`,
    more: { stream: true, stream_options: { include_usage: true } },
  },
]) {
  test(`if the reply to an admission is lost, ${what} still reaches its caller, who is charged once`, async (t) => {
    const setup = await setUp(t);
    if (setup === null) return;
    const { stack, account } = setup;
    const { proxy, url } = await startHeldApi(t, stack);
    proxy.hold(content);
    const chat = { ...chatOf(content, more), model };
    const response = await postJson(`${url}/v1/chat/completions`, account.apiKey, chat);
    t.is(response.status, 200);
    const { costRub, text } = await read(response, model === 'drip-chat');
    t.is(text, `You said: ${content}`);
    await waitForNoReservation(stack, account.id);
    const charged = await readAmountCharged(stack, account.id, '100');
    t.true(charged > 0n);
    t.is(toNano(costRub), charged);
  });
}

test('if the reply to an admission is lost and no worker has accepted the chat, the caller gets service_unavailable, and nothing is charged when a worker takes it later', async (t) => {
  const setup = await setUp(t);
  if (setup === null) return;
  const { stack, account } = setup;
  const { proxy, url } = await startHeldApi(t, stack);
  await stack.stopWorkers();
  proxy.hold('three lost words');
  const chat = { ...chatOf('three lost words'), model: 'slow-chat' };
  const response = await postJson(`${url}/v1/chat/completions`, account.apiKey, chat);
  t.is(response.status, 503);
  t.is(((await response.json()) as { error: { code: string } }).error.code, 'service_unavailable');
  await waitForNoReservation(stack, account.id);
  t.is(await stack.redis.llen(redisKeys.readyQueue), 1, 'the chat has been pushed');
  proxy.release();
  await stack.startWorker();
  await waitFor('the worker to take it', async () => (await stack.redis.llen(redisKeys.readyQueue)) === 0);
  // A call of the vendor that began for the first chat would have ended by the time this one has.
  const other = await stack.createAccount();
  const next = await stack.post('/v1/chat/completions', other.apiKey, { ...chat, model: 'slow-chat' });
  t.is(next.status, 200);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
});

test('if all connections are reset before the reply to an admission has arrived, the caller gets service_unavailable, the worker stops, and nothing is charged', async (t) => {
  const setup = await setUp(t);
  if (setup === null) return;
  const { stack, account, vendor } = setup;
  const { proxy, url } = await startHeldApi(t, stack);
  proxy.hold('three lost words');
  const pending = postJson(`${url}/v1/chat/completions`, account.apiKey, {
    ...chatOf('three lost words'),
    model: 'slow-chat',
  });
  await vendor.requests.waitFor(({ model }) => model === 'gpt+slow-4000');
  proxy.cut();
  const response = await pending;
  t.is(response.status, 503);
  t.is(((await response.json()) as { error: { code: string } }).error.code, 'service_unavailable');
  proxy.release();
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
  await waitFor('the vendor call to be aborted', () => vendor.requests.counters.aborted === 1);
});
