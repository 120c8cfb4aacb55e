import { randomUUID } from 'node:crypto';
import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { startApiOf } from '../support/other-api.ts';
import { readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { postJson } from '../support/post-json.ts';
import { parseSse } from '../support/sse-events.ts';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** An api process that must exit before its requests have ended. */

const chats = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'one two three four five six seven eight nine ten' }];
const text = `You said: ${messages[0]!.content}`;

const catalogOf = (vendorUrl: string): string => `
upstreams: { vendor: { kind: openai, baseUrl: "${vendorUrl}/v1" } }
models:
  - { id: held, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt-held }] }
  - { id: endless, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+stall-4 }] }
`;

test('its running requests end with an error that says whether they may be charged, and stored ones continue at another process', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const held = vendor.hold('gpt-held');
  t.teardown(() => held.end());
  const stack = await useStack(t, { catalog: catalogOf(vendor.url) });
  const account = await stack.createAccount();
  const stopping = await startApiOf(stack);
  const post = (body: object, headers: Record<string, string> = {}, url = stopping.url): Promise<Response> =>
    postJson(`${url}${chats}`, account.apiKey, { messages, ...body }, headers);
  const key = { 'idempotency-key': randomUUID() };
  const streamed = post({ model: 'endless', stream: true });
  const whole = post({ model: 'held' });
  const keyed = post({ model: 'held' }, key);
  const body = (await streamed).body!.getReader();
  let seen = '';
  while (!seen.includes('said')) seen += Buffer.from((await body.read()).value ?? []).toString();
  await waitFor('the calls', () => held.waiting === 2);

  const stopped = stopping.stop();
  await stopping.handBack();
  for (let read = await body.read(); !read.done; read = await body.read())
    seen += Buffer.from(read.value).toString();
  const { error } = parseSse(seen).events.at(-1)!;
  t.is(error?.code, 'service_unavailable');
  t.regex(error?.message ?? '', /^The server was restarted .* charged/s);
  t.is((await whole).status, 503);
  t.is((await whole).headers.get('x-should-retry'), 'false');
  t.regex(await (await whole).text(), /The server was restarted/);
  t.is((await keyed).status, 503);
  t.not((await keyed).headers.get('x-should-retry'), 'false');
  t.regex(await (await keyed).text(), /The request continues/);
  await waitFor('the call of the caller without a key to be cancelled', () => held.waiting === 1);

  const again = post({ model: 'held' }, key, stack.url);
  held.end();
  t.is((await again).headers.get('idempotent-replayed'), 'true');
  const { choices } = (await (await again).json()) as { choices: { message: { content: string } }[] };
  t.is(choices[0]?.message.content, text);
  await stopped;
  await waitForNoReservation(stack, account.id);
  t.is(vendor.requests.counters.total, 3);
});

test('requests that no worker has taken leave the queue, and are not charged', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const account = await stack.createAccount();
  const stopping = await startApiOf(stack);
  const waiting = postJson(`${stopping.url}${chats}`, account.apiKey, { model: 'demo-echo', messages });
  const pushed = redisKeys.pushedTo(redisKeys.readyQueue);
  await waitFor('the chat to be queued', async () => (await stack.redis.get(pushed)) === '1');
  const stopped = stopping.stop();
  await stopping.handBack();
  t.is((await waiting).status, 503);
  t.not((await waiting).headers.get('x-should-retry'), 'false');
  t.notRegex(await (await waiting).text(), /charged/);
  await stopped;
  await waitForNoReservation(stack, account.id);
  // Items are blanked, so that the positions of those behind do not change.
  t.deepEqual(await stack.redis.lrange(redisKeys.readyQueue, 0, -1), ['']);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
});
