import test from 'ava';
import { makePng } from '../../scripts/vendor-simulator/tiny-png.ts';
import { Chats, hello, usageOf, vendorKey } from '../support/chats.ts';
import { findRow } from '../support/observe.ts';
import { waitFor } from '../support/wait-for.ts';

/** Chat responses, what reaches the vendor, and what is logged. */

const chats = new Chats(test);
const plain = chats.addModel('gpt-sim');

test('a response has the fields in the specification, and its id is the request id', async (t) => {
  const account = await chats.stack.createAccount();
  const { status, answer, requestId } = await chats.ask(account, plain);
  t.is(status, 200);
  t.deepEqual(Object.keys(answer).sort(), ['choices', 'created', 'id', 'model', 'object', 'usage']);
  t.is(answer.id, requestId);
  t.is(answer.object, 'chat.completion');
  t.true(Math.abs(answer.created - Date.now() / 1_000) < 5);
  t.is(answer.model, plain);
  t.is(answer.choices.length, 1);
  const [choice] = answer.choices;
  for (const name of ['message', 'logprobs', 'finish_reason', 'index']) t.true(name in choice!, name);
  t.like(choice, { index: 0, finish_reason: 'stop', logprobs: null });
  t.like(choice?.message, { role: 'assistant', content: `You said: ${hello}` });
  t.deepEqual(Object.keys(answer.usage).sort(), [
    'completion_tokens',
    'completion_tokens_details',
    'cost_request',
    'free_request',
    'prompt_tokens',
    'prompt_tokens_details',
    'total_time',
    'total_tokens',
  ]);
  t.like(answer.usage, { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8, free_request: false });
  t.true(answer.usage.total_time >= 0 && answer.usage.total_time < 10);
});

test('parameters set by the caller reach the vendor, and unset ones do not', async (t) => {
  const account = await chats.stack.createAccount();
  const text = chats.uniqueText();
  const set = { top_p: 0.5, stop: ['END'], seed: 7, presence_penalty: 1, user: 'u-1', temperature: 0.1 };
  await chats.ask(account, plain, { ...set, frequency_penalty: null, logprobs: null }, text);
  const { body, key } = chats.sentTo(text)[0]!;
  t.like(body, set);
  t.is(key, vendorKey);
  t.is(body?.['model'], 'gpt-sim');
  for (const name of ['frequency_penalty', 'logprobs', 'top_k', 'tools', 'stream']) {
    t.false(Object.hasOwn(body!, name), name);
  }
});

test('an image reaches the vendor byte for byte', async (t) => {
  const account = await chats.stack.createAccount();
  const text = chats.uniqueText();
  const bytes = Buffer.concat([makePng(8, 8, [200, 10, 10]), Buffer.alloc(3_000_000, 7)]);
  const url = `data:image/png;base64,${bytes.toString('base64')}`;
  const content = [
    { type: 'text', text },
    { type: 'image_url', image_url: { url, detail: 'low' } },
  ];
  const { status } = await chats.ask(account, plain, { messages: [{ role: 'user', content }] });
  t.is(status, 200);
  t.deepEqual(chats.sentTo(text)[0]?.body?.['messages'], [{ role: 'user', content }]);
});

const reasoner = chats.addModel('gpt-sim-reasoner', {
  fields: 'reasoning: true,',
  route: 'drops: [max_tokens, temperature]',
});

test('parameters that a reasoning model rejects are dropped, and its reasoning is passed on', async (t) => {
  const account = await chats.stack.createAccount();
  const text = chats.uniqueText();
  const { status, answer } = await chats.ask(account, reasoner, { max_tokens: 100, temperature: 0.3 }, text);
  t.is(status, 200, JSON.stringify(answer));
  t.is(answer.choices[0]?.message.reasoning_content, 'The user asked, so an answer is due.');
  const { body } = chats.sentTo(text)[0]!;
  t.is(body?.['max_completion_tokens'], 100);
  t.is(body?.['temperature'], undefined);
});

const free = chats.addModel('gpt-sim', {
  pricing: 'pricing: { prompt: 13.37, completion: 42.42, free_requests: true }',
});
const cached = chats.addScripted({
  pricing: 'pricing: { prompt: 13.37, completion: 42.42, input_cache_read: 3.31 }',
});
const failing = chats.addModel('gpt-sim+fail-500');

test('a log row has every field, and daily and account totals include it', async (t) => {
  const account = await chats.stack.createAccount({ freeRequests: 1 });
  const freeOfCharge = await chats.ask(account, free, { user: 'end-user-7' });
  const paid = await chats.ask(account, cached, {}, usageOf(50, 3, { cached_tokens: 40 }));
  const failed = await chats.ask(account, failing);
  // 10 uncached tokens × 13.37 + 40 cached tokens × 3.31 + 3 completion tokens × 42.42
  const cost = 393_360n;
  await chats.costs(t, account, paid.requestId, cost);
  const row = await findRow(chats.stack, paid.requestId);
  t.deepEqual(Object.keys(row).sort(), [
    '_id',
    'accountId',
    'at',
    'billedMs',
    'cacheReadTokens',
    'cacheWriteTokens',
    'callStartsMs',
    'calls',
    'characters',
    'claimHash',
    'completionTokens',
    'costNano',
    'counted',
    'details',
    'durationMs',
    'errorCode',
    'free',
    'imageQuality',
    'imageSize',
    'images',
    'model',
    'ordinal',
    'priceVersion',
    'promptTokens',
    'responseCode',
    'settledAt',
    'shortfallNano',
    'success',
    'upstream',
    'user',
    'userIp',
  ]);
  t.like(row, {
    accountId: account.id,
    model: cached,
    success: true,
    responseCode: 200,
    details: null,
    errorCode: null,
    promptTokens: 50,
    cacheReadTokens: 40,
    completionTokens: 3,
    counted: false,
    free: false,
    user: null,
    userIp: '127.0.0.1',
  });
  t.true(Math.abs(row.at.getTime() - Date.now()) < 30_000);
  t.like(await findRow(chats.stack, freeOfCharge.requestId), {
    free: true,
    costNano: 0n,
    user: 'end-user-7',
  });
  const failedRow = await findRow(chats.stack, failed.requestId);

  const { db } = chats.stack.mongo;
  // The rows are written before the totals.
  const day = await waitFor('the daily totals', () =>
    db.collection('daily_stats').findOne({ accountId: account.id, requests: 3 }),
  );
  t.like(day, {
    day: row.at.toISOString().slice(0, 10),
    // The totals include the failed request and the prompt tokens that were sent for it.
    promptTokens: 3 + 50 + failedRow.promptTokens,
    cacheReadTokens: 40,
    completionTokens: 5 + 3,
    costNano: cost,
    freeRequests: 1,
  });
  const stored = await db.collection<{ _id: string }>('accounts').findOne({ _id: account.id });
  const hot = await chats.stack.readAccount(account.id);
  t.is((stored as unknown as { balanceNano: bigint }).balanceNano, hot.balanceNano);
  t.is((stored as unknown as { freeRequests: number }).freeRequests, hot.freeRequests);
  const entry = await db.collection<{ _id: string }>('ledger').findOne({ _id: paid.requestId });
  t.like(entry, { kind: 'charge', accountId: account.id, amountNano: -cost });
});
