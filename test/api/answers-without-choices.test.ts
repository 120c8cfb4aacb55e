import test from 'ava';
import { findRow, readAmountCharged } from '../support/observe.ts';
import { useScriptedStack } from '../support/scripted-stack.ts';
import type { TestStack } from '../support/stack.ts';

/** Responses with a usage count but no choices, because the model generated only reasoning. */

let stack: TestStack;
const addScript = useScriptedStack(
  test,
  (url) => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}/v1" } }
models:
  - { id: thinker, type: chat, context: 128000, reasoning: true, pricing: { prompt: 1000, completion: 1000 }, routes: [{ upstream: vendor }] }
`,
  (started) => {
    stack = started;
  },
);

const nanoPerToken = 1_000_000n;
const usage = {
  prompt_tokens: 100,
  completion_tokens: 5_000,
  total_tokens: 5_100,
  completion_tokens_details: { reasoning_tokens: 5_000 },
};
const begin = { choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] };
const responses: readonly { title: string; stream: boolean; vendorResponse: object }[] = [
  { title: 'a non-streamed response', stream: false, vendorResponse: { id: 'x', choices: [], usage } },
  { title: 'a stream', stream: true, vendorResponse: [JSON.stringify({ choices: [], usage }), '[DONE]'] },
  {
    title: 'a stream without an end marker',
    stream: true,
    vendorResponse: [JSON.stringify(begin), JSON.stringify({ choices: [], usage })],
  },
];

for (const { title, stream, vendorResponse } of responses) {
  test(`if there are no choices in ${title}, it is billed from the vendor’s usage and is not retried`, async (t) => {
    let calls = 0;
    const messages = addScript(() => {
      calls += 1;
      return vendorResponse;
    });
    const account = await stack.createAccount();
    const body = { model: 'thinker', messages, stream, max_tokens: 6_000 };
    const response = await stack.post('/v1/chat/completions', account.apiKey, body);
    t.is(response.status, 200);
    const text = await response.text();
    t.regex(text, /"finish_reason":"stop"/);
    t.notRegex(text, /"error"/);
    const row = await findRow(stack, response.headers.get('x-request-id')!);
    t.is(calls, 1);
    t.like(row, { success: true, counted: false, promptTokens: 100, completionTokens: 5_000 });
    t.is(await readAmountCharged(stack, account.id, '100'), 5_100n * nanoPerToken);
  });
}
