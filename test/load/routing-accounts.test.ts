import test, { type ExecutionContext } from 'ava';
import { chatWithUsage, ScriptedRefusal, startScriptedVendor } from '../support/scripted-vendor.ts';
import { useStack } from '../support/stack.ts';

/** If a vendor fails only for certain texts of one account, other accounts must not be affected. */

const contentCode = 'The caller does not have permission to execute the specified operation';
const tooLarge =
  'Request too large for gpt-x in organization org-1 on tokens per min (TPM): Limit 30000, Requested 45000.';

interface FailureCase {
  readonly what: string;
  readonly model: string;
  /** The vendor's response to the text; null if it never responds. */
  readonly vendorResponse: object | null;
  /** The first response to the caller. */
  readonly expected: { readonly status: number; readonly message: string };
}

const cases: readonly FailureCase[] = [
  {
    what: 'a text rejected with a 403',
    model: 'plain',
    vendorResponse: new ScriptedRefusal(403, {
      code: contentCode,
      error: 'Content violates usage guidelines. Team: team-7, Failed check: SAFETY_CHECK_TYPE_BIO',
    }),
    expected: { status: 400, message: 'Content violates usage guidelines.' },
  },
  {
    what: 'a 403 with an unknown message',
    model: 'plain',
    vendorResponse: new ScriptedRefusal(403, { error: { message: 'Blocked by policy 17.' } }),
    expected: { status: 502, message: 'upstream' },
  },
  {
    what: 'a 402 because of what the output may cost',
    model: 'plain',
    vendorResponse: new ScriptedRefusal(402, {
      error: { message: 'You can only afford 12 tokens.', code: 402 },
    }),
    expected: { status: 502, message: 'upstream' },
  },
  {
    what: 'a request larger than the limit per minute',
    model: 'plain',
    vendorResponse: new ScriptedRefusal(429, {
      error: { message: tooLarge, type: 'tokens', param: null, code: 'rate_limit_exceeded' },
    }),
    expected: { status: 400, message: 'more tokens than the vendors' },
  },
  {
    what: 'a rate limit hit only by large requests',
    model: 'plain',
    vendorResponse: new ScriptedRefusal(
      429,
      { error: { message: 'Slower.', code: 'rate_limit_exceeded' } },
      { 'retry-after': '60' },
    ),
    expected: { status: 502, message: 'have reached their rate limits' },
  },
  {
    what: 'a response that ends in a malformed call',
    model: 'gemini',
    vendorResponse: { candidates: [{ content: { parts: [] }, finishReason: 'MALFORMED_FUNCTION_CALL' }] },
    expected: { status: 502, message: 'upstream' },
  },
  {
    what: 'a non-streamed response that times out',
    model: 'plain',
    vendorResponse: null,
    expected: { status: 504, message: '' },
  },
  {
    what: 'a text that crashes the server',
    model: 'plain',
    vendorResponse: new ScriptedRefusal(500, { error: { message: 'CUDA error' } }),
    expected: { status: 502, message: 'upstream' },
  },
];

for (const { what, model, vendorResponse, expected } of cases) {
  test(`repeated failures of one account’s requests do not block the model for others: ${what}`, async (t) => {
    const { send, accounts } = await startRig(t, model, vendorResponse);
    const [attacker, present, late] = accounts;
    const first = await send(attacker!, 'attack');
    t.is(first.status, expected.status);
    t.true(first.text.includes(expected.message), first.text);
    t.false(/team-7|org-1/.test(first.text), 'the response contains nothing about the operator’s account');
    // The other two accounts send requests after 13 and after 25 failures, enough to affect the breaker and the keys.
    for (const account of [present!, late!]) {
      await Promise.all(Array.from({ length: 12 }, () => send(attacker!, 'attack')));
      for (let i = 0; i < 3; i++) {
        const { status, text } = await send(account, 'hi');
        t.is(status, 200, text);
      }
    }
  });
}

interface SentResult {
  readonly status: number;
  readonly text: string;
}

async function startRig(t: ExecutionContext, model: string, vendorResponse: object | null) {
  const vendor = await startScriptedVendor(async (body, path, call) => {
    const isBad = JSON.stringify(body).includes('attack');
    if (isBad && vendorResponse === null) await call.cut;
    if (isBad) return vendorResponse ?? {};
    if (!path.includes('enerateContent')) return chatWithUsage({ prompt_tokens: 5, completion_tokens: 1 });
    const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 1 };
    return { candidates: [{ content: { parts: [{ text: 'ok' }] }, finishReason: 'STOP' }], usageMetadata };
  });
  t.teardown(() => vendor.close());
  const common = 'type: chat, context: 100000, pricing: { prompt: 1, completion: 1 }';
  const stack = await useStack(t, {
    catalog: `
upstreams:
  v: { kind: openai, baseUrl: "${vendor.url}/v1", apiKeys: [a-key, b-key], timeoutMs: ${vendorResponse === null ? 4_000 : 60_000} }
  g: { kind: gemini, baseUrl: "${vendor.url}", apiKeys: [a-key] }
models:
  - { id: plain, ${common}, routes: [{ upstream: v, model: m }] }
  - { id: gemini, ${common}, routes: [{ upstream: g, model: m }] }
`,
  });
  const accounts = await Promise.all(
    Array.from({ length: 3 }, () => stack.createAccount({ balance: '1000', rpm: 1_000 })),
  );
  const send = async ({ apiKey }: { apiKey: string }, content: string): Promise<SentResult> => {
    const messages = [{ role: 'user', content }];
    const response = await stack.post('/v1/chat/completions', apiKey, { model, max_tokens: 100, messages });
    return { status: response.status, text: await response.text() };
  };
  return { send, accounts };
}
