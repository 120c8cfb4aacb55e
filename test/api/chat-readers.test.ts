import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import { chatPath, Chats } from '../support/chats.ts';
import { findRow, readLoss, waitForNoReservation } from '../support/observe.ts';

/** Callers that leave where calls are not read on, and callers that read slowly. */

const chats = new Chats(test);
const abrupt = chats.addUpstream('disconnectGraceMs: 0');
const dripping = chats.addModel('gpt-sim+drip-30', { upstream: abrupt });

const longText = (): string => `${chats.uniqueText()} ${'cat '.repeat(100)}`;

test('where calls are not read on, a caller that leaves a stream stops the vendor before its end and pays for what was generated', async (t) => {
  const account = await chats.stack.createAccount();
  const text = `${longText()} ${'cat '.repeat(900)}`;
  const leaving = new AbortController();
  const response = await fetch(`${chats.stack.url}${chatPath}`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({ model: dripping, stream: true, messages: [{ role: 'user', content: text }] }),
  });
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let seen = '';
  while (!seen.includes('cat')) seen += decoder.decode((await reader.read()).value, { stream: true });
  const [entry] = chats.sentTo(text.slice(0, 24));
  t.false(entry!.isOver);
  leaving.abort();
  await chats.vendor.requests.waitFor((one) => one === entry && one.isOver);
  t.true(entry!.isAborted);
  const requestId = response.headers.get('x-request-id')!;
  const row = await findRow(chats.stack, requestId);
  t.like(row, { success: false, responseCode: 499, errorCode: 'job_cancelled', counted: true });
  t.true(row.completionTokens >= 6 && row.completionTokens < 900, `${row.completionTokens} tokens`);
  // 13.37 and 42.42 roubles a million tokens, in nano-roubles a token
  const cost = BigInt(row.promptTokens) * 13_370n + BigInt(row.completionTokens) * 42_420n;
  await chats.costs(t, account, requestId, cost);
});

const freeAndSlow = chats.addModel('gpt-sim+slow-5000', {
  upstream: abrupt,
  pricing: 'pricing: { prompt: 13.37, completion: 42.42, free_requests: true }',
});

test('a caller that leaves before the first word stops the vendor, and has used the free request up: the vendor was asked', async (t) => {
  const account = await chats.stack.createAccount({ freeRequests: 1 });
  const text = chats.uniqueText();
  const leaving = new AbortController();
  const answer = fetch(`${chats.stack.url}${chatPath}`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({ model: freeAndSlow, stream: true, messages: [{ role: 'user', content: text }] }),
  });
  const isOurs = (one: LoggedRequest): boolean => JSON.stringify(one.body).includes(text);
  await chats.vendor.requests.waitFor(isOurs);
  leaving.abort();
  await t.throwsAsync(answer, { any: true });
  t.true((await chats.vendor.requests.waitFor((one) => isOurs(one) && one.isOver)).isAborted);
  await waitForNoReservation(chats.stack, account.id);
  t.is((await chats.stack.readAccount(account.id)).freeRequests, 0);
  t.is(await readLoss(chats.stack, account.id, '100'), 0n);
});

const plain = chats.addModel('gpt-sim');

test('a reader that is slow gets every word of a long answer', async (t) => {
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
