import test from 'ava';
import { useScriptedStack } from '../support/scripted-stack.ts';
import type { TestStack } from '../support/stack.ts';

/**
 * If a vendor needs its reasoning back, the gateway sends it with the tool call that followed, even if call ids repeat.
 */

let stack: TestStack;
const addScript = useScriptedStack(
  test,
  (url) => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}/v1" } }
models:
  - { id: thinker, type: chat, context: 128000, reasoning: true, pricing: { prompt: 10, completion: 10 }, routes: [{ upstream: vendor }] }
`,
  (started) => {
    stack = started;
  },
);

const payees = ['alice', 'bob'];
const thoughtOf = (payee: string): string => `Thoughts of ${payee}`;
const callTo = (payee: string): object => ({
  id: 'functions.pay:0',
  type: 'function',
  function: { name: 'pay', arguments: JSON.stringify({ to: payee }) },
});

/** A complete choice for each payee. */
const wholeResponse = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'thinker',
  choices: payees.map((payee, index) => ({
    index,
    finish_reason: 'tool_calls',
    message: {
      role: 'assistant',
      content: null,
      reasoning_content: thoughtOf(payee),
      tool_calls: [callTo(payee)],
    },
  })),
};

/** The same, streamed: the two choices are interleaved, and the last one finishes first. */
const chunk = (index: number, delta: object, finish: string | null = null): string =>
  JSON.stringify({ choices: [{ index, delta, finish_reason: finish }] });
const streamedResponse = [
  ...payees.map((payee, index) => chunk(index, { role: 'assistant', reasoning_content: thoughtOf(payee) })),
  ...payees.map((payee, index) => chunk(index, { tool_calls: [{ index: 0, ...callTo(payee) }] })),
  chunk(1, {}, 'tool_calls'),
  chunk(0, {}, 'tool_calls'),
  '[DONE]',
];

for (const stream of [false, true]) {
  test(`if several choices use the same call id, each call gets its own reasoning back, ${stream ? 'streamed' : 'not streamed'}`, async (t) => {
    const sent: Record<string, unknown>[] = [];
    const messages = addScript((body) => {
      sent.push(body);
      if (sent.length === 1) return stream ? streamedResponse : wholeResponse;
      const message = { role: 'assistant', content: 'Done.' };
      return { ...wholeResponse, choices: [{ index: 0, finish_reason: 'stop', message }] };
    });
    const account = await stack.createAccount();
    const send = async (body: object): Promise<void> => {
      const more = { model: 'thinker', tools: [{ type: 'function', function: { name: 'pay' } }] };
      const response = await stack.post('/v1/chat/completions', account.apiKey, { ...more, ...body });
      t.is(response.status, 200, await response.text());
    };
    await send({ messages, n: 2, stream });
    for (const payee of payees) {
      const toolCall = { role: 'assistant', content: null, tool_calls: [callTo(payee)] };
      const toolResult = { role: 'tool', tool_call_id: 'functions.pay:0', content: 'done' };
      await send({ messages: [...messages, toolCall, toolResult] });
      const [, repeated] = sent.at(-1)!['messages'] as Record<string, unknown>[];
      t.is(repeated!['reasoning_content'], thoughtOf(payee));
    }
  });
}
