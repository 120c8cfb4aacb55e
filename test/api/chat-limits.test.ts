import test from 'ava';
import { Chats, helloNano } from '../support/chats.ts';
import { findRow, readAmountCharged } from '../support/observe.ts';

/** Free requests, and the limit of requests per minute. */

const chats = new Chats(test);
const plain = chats.addModel('gpt-sim');
const freePrice = 'pricing: { prompt: 13.37, completion: 42.42, free_requests: true }';
const free = chats.addModel('gpt-sim', { pricing: freePrice });

test('the balance is charged only when the free requests are used up', async (t) => {
  const account = await chats.stack.createAccount({ freeRequests: 2 });
  const paid: (readonly [boolean | null, number])[] = [];
  for (let i = 0; i < 3; i++) {
    const { answer } = await chats.ask(account, free);
    paid.push([answer.usage.free_request, answer.usage.cost_request]);
  }
  t.deepEqual(paid, [
    [true, 0],
    [true, 0],
    [false, 0.00025221],
  ]);
  t.is((await chats.stack.readAccount(account.id)).freeRequests, 0);
  t.is(await readAmountCharged(chats.stack, account.id, '100'), helloNano);
});

test('a free request works with an empty balance, but not for models without free requests', async (t) => {
  const account = await chats.stack.createAccount({ balance: '0', freeRequests: 1 });
  t.is((await chats.ask(account, plain)).status, 402);
  t.is((await chats.ask(account, free)).status, 200);
  t.is((await chats.ask(account, free)).status, 402);
});

test('if an account has three free requests, exactly three of ten concurrent requests are free', async (t) => {
  const account = await chats.stack.createAccount({ freeRequests: 3 });
  const answers = await Promise.all(Array.from({ length: 10 }, () => chats.ask(account, free)));
  t.is(answers.filter((one) => one.answer.usage.free_request).length, 3);
  t.is((await chats.stack.readAccount(account.id)).freeRequests, 0);
  t.is(await readAmountCharged(chats.stack, account.id, '100'), 7n * helloNano);
});

const freeAndBroken = chats.addModel('gpt-sim+fail-500', { pricing: freePrice });

test('if the vendor fails, the free request is not used up', async (t) => {
  const account = await chats.stack.createAccount({ freeRequests: 1 });
  const { status, requestId } = await chats.ask(account, freeAndBroken);
  t.is(status, 502);
  t.like(await findRow(chats.stack, requestId), { free: false, costNano: 0n, success: false });
  t.is((await chats.stack.readAccount(account.id)).freeRequests, 1);
  t.true((await chats.ask(account, free)).answer.usage.free_request);
});

test('the fourth request within a minute is a 429 if three are allowed', async (t) => {
  const account = await chats.stack.createAccount({ rpm: 3 });
  const results: (readonly [number, string | null])[] = [];
  for (let i = 0; i < 4; i++) {
    const response = await chats.send(account, plain);
    await response.text();
    results.push([response.status, response.headers.get('x-ratelimit-remaining-requests')]);
    if (response.status === 429) {
      const seconds = Number(response.headers.get('retry-after'));
      t.true(seconds >= 1 && seconds <= 60, `retry-after ${seconds}`);
      // The exact time, which is never more than the minute that clients accept.
      const milliseconds = Number(response.headers.get('retry-after-ms'));
      t.is(Math.ceil(milliseconds / 1_000), seconds, `${milliseconds} ms`);
    }
  }
  t.deepEqual(results, [
    [200, '2'],
    [200, '1'],
    [200, '0'],
    [429, '0'],
  ]);
});

test('the rate limit is exact for a burst of concurrent requests', async (t) => {
  const account = await chats.stack.createAccount({ rpm: 7 });
  const answers = await Promise.all(Array.from({ length: 30 }, () => chats.ask(account, plain)));
  t.is(answers.filter((one) => one.status === 200).length, 7);
  t.is(answers.filter((one) => one.status === 429).length, 23);
});

const heavy = chats.addModel('gpt-sim', { fields: 'rpm_coefficient: 2,' });

test('a request to a model with coefficient two uses two rate limit slots', async (t) => {
  const account = await chats.stack.createAccount({ rpm: 5 });
  const results: (readonly [number, string | null])[] = [];
  for (let i = 0; i < 3; i++) {
    const response = await chats.send(account, heavy);
    await response.text();
    results.push([response.status, response.headers.get('x-ratelimit-remaining-requests')]);
  }
  t.deepEqual(results, [
    [200, '3'],
    [200, '1'],
    [429, '1'],
  ]);
  // One rate limit slot remains, enough for a model with coefficient one.
  t.is((await chats.ask(account, plain)).status, 200);
});

test('requests that fail validation do not use up the rate limit', async (t) => {
  const account = await chats.stack.createAccount({ rpm: 1 });
  for (let i = 0; i < 5; i++) t.is((await chats.ask(account, plain, { temperature: 9 })).status, 422);
  t.is((await chats.ask(account, plain)).status, 200);
});
