import test from 'ava';
import type { ChatResponse } from '../../shared/contract/chat-response.ts';
import { readStoredState } from '../support/observe.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { brokenBytes, sendBrokenText } from './attacks/broken-text.ts';

let stack: TestStack;
test.before(async () => {
  stack = await startStack();
});
test.after.always(() => stack?.close());

interface Refusal {
  readonly error: { readonly message: string; readonly code: string };
  readonly detail: readonly { readonly loc: readonly (string | number)[]; readonly type: string }[];
}

// Serial, because it checks that no request left data in the stores, including those of other tests.
test.serial(
  'a body with invalid text gets a 422 with the location, is not charged, and is not stored under its Idempotency-Key',
  async (t) => {
    const account = await stack.createAccount();
    const before = await readStoredState(stack, account.id);
    for (const seen of await sendBrokenText({ url: stack.url, apiKey: account.apiKey })) {
      t.is(seen.status, 422, seen.title);
      const { error, detail } = JSON.parse(seen.body) as Refusal;
      t.is(error.code, 'validation_failed', seen.title);
      const where = seen.isEscape ? ['body', 'messages', 0, 'content'] : ['body'];
      t.deepEqual(detail[0]?.loc, where, seen.title);
      t.is(detail[0]?.type, 'unicode_invalid', seen.title);
      if (!seen.isEscape)
        t.true(error.message.includes(`byte ${seen.offset},`), `${seen.title}: ${error.message}`);
    }
    t.deepEqual(await readStoredState(stack, account.id), before);
  },
);

test('invalid UTF-8 in a path or header is rejected like any other wrong value', async (t) => {
  const { apiKey } = await stack.createAccount();
  for (const bytes of Object.values(brokenBytes)) {
    const escaped = bytes.map((byte) => `%${byte.toString(16)}`).join('');
    for (const path of [`/v1/models/${escaped}`, `/v1/${escaped}`, `/files/${escaped}`]) {
      t.is((await fetch(`${stack.url}${path}`)).status, 404, path);
    }
    t.is((await fetch(`${stack.url}/v1/models?type=${escaped}`)).status, 422);
    // Each character of a header value is sent as one byte.
    const raw = String.fromCharCode(...bytes);
    const body = { model: 'demo-echo', messages: [{ role: 'user', content: 'Hello!' }] };
    const send = async (headers: Record<string, string>, key = apiKey): Promise<number> =>
      (await stack.post('/v1/chat/completions', key, body, headers)).status;
    t.is(await send({}, `${apiKey}${raw}`), 401);
    t.is(await send({ 'idempotency-key': raw }), 422);
    t.is(await send({ 'content-type': raw }), 415);
    t.is(await send({ 'x-forwarded-for': raw, 'user-agent': raw }), 200);
  }
});

test('a body may start with a byte order mark, which is ignored', async (t) => {
  const { apiKey } = await stack.createAccount();
  for (const pad of ['', ' '.repeat(100_000)]) {
    const body = `${JSON.stringify({ model: 'demo-echo', messages: [{ role: 'user', content: 'Hi!' }] })}${pad}`;
    t.is((await stack.post('/v1/chat/completions', apiKey, `\ufeff${body}`)).status, 200);
    t.is((await stack.post('/v1/chat/completions', apiKey, `\ufeff\ufeff${body}`)).status, 422);
  }
});

test('surrogate pairs, replacement characters and escaped escapes are valid text', async (t) => {
  const { apiKey } = await stack.createAccount();
  for (const text of ['\\ud83d\\ude00', '😀', '\ufffd', '\\ufffd', '\\\\ud83d', '\\u0000', '\uffff']) {
    for (const pad of ['', ' '.repeat(100_000)]) {
      const body = `${pad}{"model":"demo-echo","messages":[{"role":"user","content":"say ${text}!"}]}`;
      const response = await stack.post('/v1/chat/completions', apiKey, body);
      t.is(response.status, 200, text);
      const { choices } = (await response.json()) as ChatResponse;
      t.true(String(choices[0]?.message.content).includes(JSON.parse(`"say ${text}!"`) as string), text);
    }
  }
});
