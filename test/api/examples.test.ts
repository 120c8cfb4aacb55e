import { readFileSync } from 'node:fs';
import test from 'ava';
import { presentServer } from '../../api/present/servers.ts';
import { parseCatalog } from '../../shared/catalog/parse-catalog.ts';
import { presentModel } from '../../shared/catalog/present-model.ts';
import type { ChatResponse } from '../../shared/contract/chat-response.ts';
import { chatExample, chatStreamExample } from '../../shared/contract/chat-examples.ts';
import { embeddingExample } from '../../shared/contract/embedding-example.ts';
import type { OperationExample } from '../../shared/contract/operation.ts';
import { operations } from '../../shared/contract/operations.ts';
import type { RequestLogPage, Stats, UserBalance } from '../../shared/contract/users.ts';
import {
  profileExample,
  redeemExample,
  refillLogsExample,
  requestLogsExample,
  statsExample,
} from '../../shared/contract/users-examples.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/** The answers that the description shows are answers that come. */

let stack: TestStack;
test.before(async () => {
  stack = await startStack();
});
test.after.always(() => stack?.close());

/** What no two answers have in common. */
const own = new Set(['id', 'created', 'total_time', 'url']);
const forget = (_key: string, value: unknown): unknown => (own.has(_key) ? null : value);
/** What an answer and its example must share, in whatever order. */
const comparable = (value: unknown): unknown => JSON.parse(JSON.stringify(value, forget)) as unknown;

async function ask(path: string, { body }: OperationExample): Promise<string> {
  const { apiKey } = await stack.createAccount();
  return await (await stack.post(path, apiKey, body)).text();
}

test('the built-in models answer as the examples say, and cost as much', async (t) => {
  const { createChatCompletion, createImage } = operations;
  for (const operation of [createChatCompletion, createImage]) {
    const answer = JSON.parse(await ask(`/v1${operation.path}`, operation.example)) as unknown;
    t.deepEqual(comparable(answer), comparable(operation.example.response));
  }
});

test('the encoder answers as the example says, but for further digits', async (t) => {
  interface Answer {
    readonly data: readonly { readonly embedding: readonly number[] }[];
    readonly usage: object;
  }
  const answer = JSON.parse(await ask('/v1/embeddings', embeddingExample)) as Answer;
  const example = embeddingExample.response as Answer;
  const round = ({ data }: Answer) => data.map(({ embedding }) => embedding.map((one) => one.toFixed(2)));
  const [real, told] = [round(answer).flat(), round(example).flat()];
  t.is(real.length, 2 * 512);
  // Rounded twice, a number may be another in its last digit.
  t.true(real.every((one, i) => Math.abs(Number(one) - Number(told[i])) < 0.011));
  t.deepEqual(comparable(answer.usage), comparable(example.usage));
});

test('the stream of the example is the one that comes', async (t) => {
  const read = (text: string): unknown =>
    text
      .split('\n\n')
      .filter((event) => event.startsWith('data: {'))
      .map((event) => comparable(JSON.parse(event.slice('data: '.length))));
  t.deepEqual(
    read(await ask('/v1/chat/completions', chatStreamExample)),
    read(chatStreamExample.response as string),
  );
});

const logged = (requestLogsExample.response as RequestLogPage).items;
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const isNear = (a: number | undefined, b: number): boolean => Math.abs((a ?? NaN) - b) < 1e-9;

test('the examples of an account tell of the same requests and the same money', (t) => {
  const cost = sum(logged.map((row) => row.cost_request));
  const profile = profileExample.response as UserBalance;
  const stats = statsExample.response as Stats;
  const redeemed = redeemExample.response as UserBalance & { add_balance: number };
  t.true(isNear(profile.total_cost_request_last_hour, cost));
  t.true(isNear(profile.balance, profile.total_balance_added! - cost));
  t.is(profile.request_count_last_hour, logged.length);
  t.is(profile.average_rpm, logged.length / 60);
  t.is(profile.last_used_at, logged[0]!.created_at);
  t.is(redeemed.total_balance_added, profile.total_balance_added);
  t.like(refillLogsExample.response, {
    total_count: 1,
    items: [{ refill_code_redeemed: (redeemExample.body as { code: string }).code, balance_added: '50' }],
  });
  t.true(isNear(stats.total_cost, cost));
  t.is(stats.total_prompt_tokens, sum(logged.map((row) => row.prompt_tokens)));
  t.is(stats.total_completion_tokens, sum(logged.map((row) => row.completion_tokens)));
  t.like(stats, { total_requests: logged.length, daily_stats: { length: 1 } });
  const [day] = stats.daily_stats;
  t.like(day, {
    request_count: stats.total_requests,
    prompt_tokens: stats.total_prompt_tokens,
    completion_tokens: stats.total_completion_tokens,
    cost_request: stats.total_cost,
  });
});

test('a row of the log tells what its answer told, under an id of the time when it came', (t) => {
  const chat = chatExample.response as ChatResponse;
  const row = logged.find((one) => one.request_id === chat.id)!;
  t.like(row, {
    prompt_tokens: chat.usage.prompt_tokens,
    completion_tokens: chat.usage.completion_tokens,
    total_time: chat.usage.total_time,
    cost_request: chat.usage.cost_request,
  });
  for (const { request_id: id, created_at: at } of logged) {
    t.is(new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString(), at);
  }
  t.is(chat.created, Math.floor(Date.parse(row.created_at) / 1_000));
});

test('the example of a model is that of the shipped catalog, and that of a server the first of the list', (t) => {
  const today = '2025-11-21';
  const catalog = parseCatalog(readFileSync('catalog.yaml', 'utf8'), {
    env: {},
    fileName: 'catalog.yaml',
    today,
  });
  const model = catalog.find('demo-echo')!;
  t.deepEqual(comparable(presentModel(model, true)), comparable(operations.getModel.example.response));
  t.deepEqual(operations.listServers.example.response, [presentServer('main', 'https://gateway.example')]);
});
