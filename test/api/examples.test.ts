import { readFileSync } from 'node:fs';
import test from 'ava';
import { presentServer } from '../../api/endpoints/public/servers.ts';
import { parseCatalog } from '../../shared/catalog/parse-catalog.ts';
import { presentModel } from '../../api/endpoints/public/models.ts';
import type { ChatResponse } from '../../shared/contract/chat-response.ts';
import { chatExample, chatStreamExample } from '../../shared/contract/chat-examples.ts';
import { embeddingExample } from '../../shared/contract/embedding-example.ts';
import type { OperationExample } from '../../shared/contract/operation.ts';
import { operations } from '../../api/contract/operations.ts';
import type { RequestLogPage } from '../../api/contract/request-logs.ts';
import type { Stats, UserBalance } from '../../api/contract/users.ts';
import {
  profileExample,
  redeemExample,
  refillLogsExample,
  requestLogsExample,
  statsExample,
} from '../../api/contract/users-examples.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/** The server returns the example responses in the OpenAPI document. */

let stack: TestStack;
test.before(async () => {
  stack = await startStack();
});
test.after.always(() => stack?.close());

/** Keys whose values differ between any two responses. */
const uniqueKeys = new Set(['id', 'created', 'total_time', 'url']);
const blankUnique = (key: string, value: unknown): unknown => (uniqueKeys.has(key) ? null : value);
/** The part of a response that its example must match, with unique values removed. */
const comparable = (value: unknown): unknown => JSON.parse(JSON.stringify(value, blankUnique)) as unknown;

async function post(path: string, { body }: OperationExample): Promise<string> {
  const { apiKey } = await stack.createAccount();
  return await (await stack.post(path, apiKey, body)).text();
}

test('the built-in models respond as in the examples, at the same cost', async (t) => {
  const { createChatCompletion, createImage } = operations;
  for (const operation of [createChatCompletion, createImage]) {
    const response = JSON.parse(await post(`/v1${operation.path}`, operation.example)) as unknown;
    t.deepEqual(comparable(response), comparable(operation.example.response));
  }
});

test('the embedding model responds as in the example, except that its numbers have more digits', async (t) => {
  interface EmbeddingResponse {
    readonly data: readonly { readonly embedding: readonly number[] }[];
    readonly usage: object;
  }
  const response = JSON.parse(await post('/v1/embeddings', embeddingExample)) as EmbeddingResponse;
  const example = embeddingExample.response as EmbeddingResponse;
  const round = ({ data }: EmbeddingResponse) =>
    data.map(({ embedding }) => embedding.map((one) => one.toFixed(2)));
  const [actual, expected] = [round(response).flat(), round(example).flat()];
  t.is(actual.length, 2 * 512);
  // A number that is rounded twice may differ in its last digit.
  t.true(actual.every((one, i) => Math.abs(Number(one) - Number(expected[i])) < 0.011));
  t.deepEqual(comparable(response.usage), comparable(example.usage));
});

test('the stream is the same as in the example', async (t) => {
  const read = (text: string): unknown =>
    text
      .split('\n\n')
      .filter((event) => event.startsWith('data: {'))
      .map((event) => comparable(JSON.parse(event.slice('data: '.length))));
  t.deepEqual(
    read(await post('/v1/chat/completions', chatStreamExample)),
    read(chatStreamExample.response as string),
  );
});

const loggedRequests = (requestLogsExample.response as RequestLogPage).items;
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const isNear = (a: number | undefined, b: number): boolean => Math.abs((a ?? NaN) - b) < 1e-9;

test('the examples of the account operations show the same requests and the same amounts', (t) => {
  const cost = sum(loggedRequests.map((row) => row.cost_request));
  const profile = profileExample.response as UserBalance;
  const stats = statsExample.response as Stats;
  const redeemed = redeemExample.response as UserBalance & { add_balance: number };
  t.true(isNear(profile.total_cost_request_last_hour, cost));
  t.true(isNear(profile.balance, profile.total_balance_added! - cost));
  t.is(profile.request_count_last_hour, loggedRequests.length);
  t.is(profile.average_rpm, loggedRequests.length / 60);
  t.is(profile.last_used_at, loggedRequests[0]!.created_at);
  t.is(redeemed.total_balance_added, profile.total_balance_added);
  t.like(refillLogsExample.response, {
    total_count: 1,
    items: [{ refill_code_redeemed: (redeemExample.body as { code: string }).code, balance_added: '50' }],
  });
  t.true(isNear(stats.total_cost, cost));
  t.is(stats.total_prompt_tokens, sum(loggedRequests.map((row) => row.prompt_tokens)));
  t.is(stats.total_completion_tokens, sum(loggedRequests.map((row) => row.completion_tokens)));
  t.like(stats, { total_requests: loggedRequests.length, daily_stats: { length: 1 } });
  const [day] = stats.daily_stats;
  t.like(day, {
    request_count: stats.total_requests,
    prompt_tokens: stats.total_prompt_tokens,
    completion_tokens: stats.total_completion_tokens,
    cost_request: stats.total_cost,
  });
});

test('a log row matches its response, and its id encodes the time of the request', (t) => {
  const chat = chatExample.response as ChatResponse;
  const row = loggedRequests.find((one) => one.request_id === chat.id)!;
  t.like(row, {
    prompt_tokens: chat.usage.prompt_tokens,
    completion_tokens: chat.usage.completion_tokens,
    total_time: chat.usage.total_time,
    cost_request: chat.usage.cost_request,
  });
  for (const { request_id: id, created_at: at } of loggedRequests) {
    t.is(new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString(), at);
  }
  t.is(chat.created, Math.floor(Date.parse(row.created_at) / 1_000));
});

test('the example of a model matches the shipped catalog, and that of the servers starts with the main server', (t) => {
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
