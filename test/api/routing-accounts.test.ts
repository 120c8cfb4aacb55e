import test, { type ExecutionContext } from 'ava';
import { answerWithUsage, ScriptedRefusal, startScriptedVendor } from '../support/scripted-vendor.ts';
import { useStack } from '../support/stack.ts';

/** What one account's requests bring about is no other's matter: a vendor that fails for some words alone. */

const contentCode = 'The caller does not have permission to execute the specified operation';
const tooLarge =
  'Request too large for gpt-x in organization org-1 on tokens per min (TPM): Limit 30000, Requested 45000.';

interface Case {
  readonly what: string;
  readonly model: string;
  /** What the vendor says to the words; nothing where it never comes to an end. */
  readonly answer: object | null;
  /** What their caller is told, at first. */
  readonly told: { readonly status: number; readonly words: string };
}

const cases: readonly Case[] = [
  {
    what: 'a text that is refused with a 403',
    model: 'plain',
    answer: new ScriptedRefusal(403, {
      code: contentCode,
      error: 'Content violates usage guidelines. Team: team-7, Failed check: SAFETY_CHECK_TYPE_BIO',
    }),
    told: { status: 422, words: 'Content violates usage guidelines.' },
  },
  {
    what: 'a 403 in words that nobody knows',
    model: 'plain',
    answer: new ScriptedRefusal(403, { error: { message: 'Blocked by policy 17.' } }),
    told: { status: 502, words: 'upstream' },
  },
  {
    what: 'a 402 for as much as the answer may cost',
    model: 'plain',
    answer: new ScriptedRefusal(402, { error: { message: 'You can only afford 12 tokens.', code: 402 } }),
    told: { status: 502, words: 'upstream' },
  },
  {
    what: 'a request that is larger than a minute’s limit',
    model: 'plain',
    answer: new ScriptedRefusal(429, {
      error: { message: tooLarge, type: 'tokens', param: null, code: 'rate_limit_exceeded' },
    }),
    told: { status: 422, words: 'more tokens than the vendors' },
  },
  {
    what: 'a limit that is met by large requests alone',
    model: 'plain',
    answer: new ScriptedRefusal(
      429,
      { error: { message: 'Slower.', code: 'rate_limit_exceeded' } },
      { 'retry-after': '60' },
    ),
    told: { status: 502, words: 'at their limits' },
  },
  {
    what: 'an answer that ends in a malformed call',
    model: 'gemini',
    answer: { candidates: [{ content: { parts: [] }, finishReason: 'MALFORMED_FUNCTION_CALL' }] },
    told: { status: 502, words: 'upstream' },
  },
  {
    what: 'a whole answer that takes too long',
    model: 'plain',
    answer: null,
    told: { status: 504, words: '' },
  },
  {
    what: 'words that a server crashes on',
    model: 'plain',
    answer: new ScriptedRefusal(500, { error: { message: 'CUDA error' } }),
    told: { status: 502, words: 'upstream' },
  },
];

for (const { what, model, answer, told } of cases) {
  test(`${what}, however often it is sent by one account, closes the model to no other`, async (t) => {
    const { ask, accounts } = await startRig(t, model, answer);
    const [attacker, innocent, late] = accounts;
    const first = await ask(attacker!, 'attack');
    t.is(first.status, told.status);
    t.true(first.text.includes(told.words), first.text);
    t.false(/team-7|org-1/.test(first.text), 'nothing of the operator’s account');
    // An account that is there from the start, and one that comes when the breaker and the keys are what they became.
    for (const account of [innocent!, late!]) {
      await Promise.all(Array.from({ length: 12 }, () => ask(attacker!, 'attack')));
      for (let i = 0; i < 3; i++) {
        const { status, text } = await ask(account, 'hi');
        t.is(status, 200, text);
      }
    }
  });
}

interface Told {
  readonly status: number;
  readonly text: string;
}

async function startRig(t: ExecutionContext, model: string, answer: object | null) {
  const vendor = await startScriptedVendor(async (body, path, call) => {
    const isBad = JSON.stringify(body).includes('attack');
    if (isBad && answer === null) await call.cut;
    if (isBad) return answer ?? {};
    if (!path.includes('enerateContent')) return answerWithUsage({ prompt_tokens: 5, completion_tokens: 1 });
    const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 1 };
    return { candidates: [{ content: { parts: [{ text: 'ok' }] }, finishReason: 'STOP' }], usageMetadata };
  });
  t.teardown(() => vendor.close());
  const common = 'type: chat, context: 100000, pricing: { prompt: 1, completion: 1 }';
  const stack = await useStack(t, {
    catalog: `
upstreams:
  v: { kind: openai, baseUrl: "${vendor.url}/v1", apiKeys: [a-key, b-key], timeoutMs: ${answer === null ? 4_000 : 60_000} }
  g: { kind: gemini, baseUrl: "${vendor.url}", apiKeys: [a-key] }
models:
  - { id: plain, ${common}, routes: [{ upstream: v, model: m }] }
  - { id: gemini, ${common}, routes: [{ upstream: g, model: m }] }
`,
  });
  const accounts = await Promise.all(
    Array.from({ length: 3 }, () => stack.createAccount({ balance: '1000', rpm: 1_000 })),
  );
  const ask = async ({ apiKey }: { apiKey: string }, content: string): Promise<Told> => {
    const messages = [{ role: 'user', content }];
    const response = await stack.post('/v1/chat/completions', apiKey, { model, max_tokens: 100, messages });
    return { status: response.status, text: await response.text() };
  };
  return { ask, accounts };
}
