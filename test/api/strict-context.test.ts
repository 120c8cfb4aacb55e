import test from 'ava';
import { countTokens } from '../../shared/catalog/count-tokens.ts';
import {
  ScriptedRefusal,
  startScriptedVendor,
  unstreamedChat,
  type ScriptedVendor,
} from '../support/scripted-vendor.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/** Servers that count a prompt in their own vocabulary, and refuse a chat that may exceed their context. */

const context = 8_192;

/** What a chat template adds. */
const templateTokens = 11;

interface Call {
  readonly limit: number;
}

interface VendorBody {
  /** How it refuses, and how many times as many tokens as ours a text takes. */
  readonly model: string;
  readonly messages: readonly [{ readonly content: string }];
  readonly max_tokens: number;
}

const writeRefusals: Readonly<Record<string, (limit: number, prompt: number) => string>> = {
  exact: (limit, prompt) =>
    `'max_tokens' or 'max_completion_tokens' is too large: ${limit}. This model's maximum context length is ${context} tokens and your request has ${prompt} input tokens (${limit} > ${context} - ${prompt}). (parameter=max_tokens, value=${limit})`,
  truncating: (limit) =>
    `This model's maximum context length is ${context} tokens. However, you requested ${limit} output tokens and your prompt contains at least ${context - limit + 1} input tokens, for a total of at least ${context + 1} tokens.`,
};

const russian = 'Съешь же ещё этих мягких французских булок, да выпей чаю. ';
const hindi = 'ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले। ';

const repeat = (text: string, characters: number): string =>
  text.repeat(Math.ceil(characters / text.length)).slice(0, characters);

const cases = [
  { name: 'Russian, Llama 3', model: 'exact-1.07', text: repeat(russian, 3_000), calls: 1 },
  { name: 'Russian, Mistral', model: 'exact-1.32', text: repeat(russian, 3_000), calls: 1 },
  { name: 'Russian, Qwen', model: 'exact-1.65', text: repeat(russian, 3_000), calls: 1 },
  { name: 'Hindi', model: 'exact-2', text: repeat(hindi, 3_000), calls: 1 },
  { name: 'most of the context', model: 'exact-1.65', text: repeat(russian, 12_000), calls: 2 },
  {
    name: 'most of the context, and a refusal that does not say how long the prompt is',
    model: 'truncating-1.65',
    text: repeat(russian, 12_000),
    calls: 2,
  },
];

/** Calls by the content of their prompt. */
const seen = new Map<string, Call[]>();
let vendor: ScriptedVendor;
let stack: TestStack;

test.before(async () => {
  vendor = await startScriptedVendor((body) => {
    const { model, messages, max_tokens: limit } = body as unknown as VendorBody;
    const [{ content }] = messages;
    seen.set(content, [...(seen.get(content) ?? []), { limit }]);
    const [kind, ratio] = model.split('-') as [string, string];
    const prompt = Math.ceil(countTokens(content) * Number(ratio)) + templateTokens;
    if (prompt + limit <= context)
      return { ...unstreamedChat, usage: { prompt_tokens: prompt, completion_tokens: 1 } };
    const message = writeRefusals[kind]!(limit, prompt);
    return new ScriptedRefusal(400, { error: { message, type: 'BadRequestError', param: null, code: 400 } });
  });
  const models = [...new Set(cases.map(({ model }) => model))].map(
    (model) =>
      `  - { id: "${model}", type: chat, context: ${context}, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: vendor, model: "${model}" }] }`,
  );
  const upstreams = `upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1" } }`;
  stack = await startStack({ catalog: [upstreams, 'models:', ...models].join('\n') });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

for (const { name, model, text, calls } of cases) {
  for (const stated of [null, 7_000]) {
    const title = stated === null ? 'without a limit' : 'with a limit that leaves no room';
    test(`a chat ${title} is answered, and what it may generate fits the vendor's context: ${name}`, async (t) => {
      const account = await stack.createAccount();
      const content = `${text} ${title} ${name}`;
      const { status } = await stack.post('/v1/chat/completions', account.apiKey, {
        model,
        messages: [{ role: 'user', content }],
        max_tokens: stated,
      });
      t.is(status, 200);
      const limits = seen.get(content)!.map(({ limit }) => limit);
      if (stated === null) t.is(limits.length, calls);
      t.true(limits.length <= 4);
      // Never more than was reserved for the first call.
      t.deepEqual(
        limits,
        limits.toSorted((a, b) => b - a),
      );
    });
  }
}
