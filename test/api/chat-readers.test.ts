import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import { chatPath, Chats } from '../support/chats.ts';
import { findRow, readAmountCharged, waitForNoReservation } from '../support/observe.ts';

/** Clients that disconnect while the upstream has no disconnect grace, and clients that read slowly. */

const chats = new Chats(test);
const noGrace = chats.addUpstream('disconnectGraceMs: 0');
const dripping = chats.addModel('gpt-sim+drip-30', { upstream: noGrace });

const longText = (): string => `${chats.uniqueText()} ${'cat '.repeat(100)}`;

test('without a disconnect grace, a disconnect during a stream aborts the vendor call, and the caller pays for the output so far', async (t) => {
  const account = await chats.stack.createAccount();
  const text = `${longText()} ${'cat '.repeat(900)}`;
  const client = new AbortController();
  const response = await fetch(`${chats.stack.url}${chatPath}`, {
    method: 'POST',
    signal: client.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({ model: dripping, stream: true, messages: [{ role: 'user', content: text }] }),
  });
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let output = '';
  while (!output.includes('cat')) output += decoder.decode((await reader.read()).value, { stream: true });
  const [entry] = chats.sentTo(text.slice(0, 24));
  t.false(entry!.isOver);
  client.abort();
  await chats.vendor.requests.waitFor((one) => one === entry && one.isOver);
  t.true(entry!.isAborted);
  const requestId = response.headers.get('x-request-id')!;
  const row = await findRow(chats.stack, requestId);
  t.like(row, { success: false, responseCode: 499, errorCode: 'job_cancelled', counted: true });
  t.true(row.completionTokens >= 6 && row.completionTokens < 900, `${row.completionTokens} tokens`);
  // 13.37 and 42.42 roubles per million tokens, in nano-roubles per token
  const cost = BigInt(row.promptTokens) * 13_370n + BigInt(row.completionTokens) * 42_420n;
  await chats.costs(t, account, requestId, cost);
});

const freeAndSlow = chats.addModel('gpt-sim+slow-5000', {
  upstream: noGrace,
  pricing: 'pricing: { prompt: 13.37, completion: 42.42, free_requests: true }',
});

test('a disconnect before the first output aborts the vendor call and uses up the free request, because the vendor was called', async (t) => {
  const account = await chats.stack.createAccount({ freeRequests: 1 });
  const text = chats.uniqueText();
  const client = new AbortController();
  const responsePromise = fetch(`${chats.stack.url}${chatPath}`, {
    method: 'POST',
    signal: client.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({ model: freeAndSlow, stream: true, messages: [{ role: 'user', content: text }] }),
  });
  const isOurRequest = (one: LoggedRequest): boolean => JSON.stringify(one.body).includes(text);
  await chats.vendor.requests.waitFor(isOurRequest);
  client.abort();
  await t.throwsAsync(responsePromise, { any: true });
  t.true((await chats.vendor.requests.waitFor((one) => isOurRequest(one) && one.isOver)).isAborted);
  await waitForNoReservation(chats.stack, account.id);
  t.is((await chats.stack.readAccount(account.id)).freeRequests, 0);
  t.is(await readAmountCharged(chats.stack, account.id, '100'), 0n);
});

const plain = chats.addModel('gpt-sim');

test('a slow reader receives every word of a long stream', async (t) => {
  const account = await chats.stack.createAccount();
  const text = `${chats.uniqueText()} ${'word '.repeat(3_500)}`;
  const response = await chats.send(account, plain, { stream: true }, text);
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let body = '';
  for (let reads = 0; ; reads++) {
    const { value, done } = await reader.read();
    if (done) break;
    body += decoder.decode(value, { stream: true });
    if (reads < 5) await delay(100);
  }
  t.is(body.match(/ word/g)?.length, 3_500);
  t.true(body.trimEnd().endsWith('data: [DONE]'));
});
