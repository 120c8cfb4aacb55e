import test from 'ava';
import { Chats, hello, helloNano, helloTokens } from '../support/chats.ts';
import { findRow } from '../support/observe.ts';
import { readSse } from '../support/sse-events.ts';

/** Vendors that fail before any output, in the middle of it, and in other ways. */

const chats = new Chats(test);

const hasty = chats.addUpstream('timeoutMs: 300');
/** The key is revoked; the vendor repeats it. */
const dead = chats.addUpstream('', '[sk-secret-key-998877+revoked]');
const unauthorized = chats.addModel('gpt-sim+echokey', { upstream: dead });
const refusing = chats.addModel('gpt-sim+fail-400+echokey');

const failures: readonly (readonly [what: string, model: string, status: number, code: string])[] = [
  ['a vendor that fails', chats.addModel('gpt-sim+fail-500'), 502, 'upstream_error'],
  ['a vendor that is at its limit', chats.addModel('gpt-sim+fail-429+retry-20'), 502, 'upstream_error'],
  ['a vendor that talks nonsense', chats.addModel('gpt-sim+garbage'), 502, 'upstream_error'],
  ['a vendor that does not know our key', unauthorized, 502, 'upstream_error'],
  [
    'a vendor that is too slow',
    chats.addModel('gpt-sim+slow-3000', { upstream: hasty }),
    504,
    'upstream_timeout',
  ],
  ['a vendor that refuses the request', refusing, 422, 'upstream_rejected'],
];
for (const [what, model, status, code] of failures) {
  for (const stream of [false, true]) {
    test(`${what} is a ${status} ${code} without a charge${stream ? ', streamed as well' : ''}`, async (t) => {
      const account = await chats.stack.createAccount();
      const text = chats.uniqueText();
      const { status: got, answer, requestId, response } = await chats.ask(account, model, { stream }, text);
      t.is(got, status);
      t.is(answer.error.code, code);
      t.regex(response.headers.get('content-type') ?? '', /^application\/json/);
      t.false(/sk-|key-0123|998877/.test(JSON.stringify(answer)), JSON.stringify(answer));
      await chats.costs(t, account, requestId, 0n);
      const row = await findRow(chats.stack, requestId);
      t.like(row, { success: false, responseCode: status, errorCode: code, completionTokens: 0 });
      t.truthy(row.details);
      t.false(/sk-|998877/.test(row.details!), row.details!);
      const tries = chats.sentTo(text).length;
      // A key that was refused is set aside: of these two tests only the one that runs first calls the vendor.
      const least = model === unauthorized ? 0 : 1;
      t.true(code === 'upstream_rejected' ? tries === 1 : tries >= least && tries <= 3, `${tries} tries`);
    });
  }
}

test('a refusal tells the vendor’s own words', async (t) => {
  const account = await chats.stack.createAccount();
  const { answer } = await chats.ask(account, refusing);
  t.regex(answer.error.message, /This failure was asked for\./);
});

for (const [what, model] of [
  ['fails', chats.addModelWithSecond('gpt-sim+fail-500')],
  ['is at its limit', chats.addModelWithSecond('gpt-sim+fail-429')],
  ['talks nonsense', chats.addModelWithSecond('gpt-sim+garbage')],
] as const) {
  test(`where the first route ${what}, the second answers and is paid once`, async (t) => {
    const account = await chats.stack.createAccount();
    const { status, answer, requestId } = await chats.ask(account, model);
    t.is(status, 200);
    t.is(answer.choices[0]?.message.content, `You said: ${hello}`);
    await chats.costs(t, account, requestId, helloNano);
  });
}

const halfDead = chats.addModel('gpt-sim', {
  upstream: chats.addUpstream('', '[sk-one+exhausted, sk-two+revoked, sk-three-alive]'),
});

test('where keys of an upstream are spent or revoked, another is taken', async (t) => {
  const account = await chats.stack.createAccount();
  const answers = await Promise.all(Array.from({ length: 12 }, () => chats.ask(account, halfDead)));
  t.true(answers.every((one) => one.status === 200));
});

const cutWhole = chats.addModelWithSecond('gpt-sim+cutbytes-40');

test('an answer cut in its middle is asked for again at the other route', async (t) => {
  const account = await chats.stack.createAccount();
  const { status, answer, requestId } = await chats.ask(account, cutWhole);
  t.is(status, 200);
  t.is(answer.choices[0]?.message.content, `You said: ${hello}`);
  await chats.costs(t, account, requestId, helloNano);
});

const cutFirst = chats.addModelWithSecond('gpt-sim+cut-1');

test('a stream cut before its first word goes on from the other route without a seam', async (t) => {
  const account = await chats.stack.createAccount();
  const response = await chats.send(account, cutFirst, { stream: true });
  t.is(response.status, 200);
  const { events, isDone, text } = await readSse(response);
  t.is(text, `You said: ${hello}`);
  t.true(isDone);
  t.is(events.filter((event) => event.choices?.[0]?.delta.role !== undefined).length, 1);
  t.is(new Set(events.map((event) => event.id)).size, 1);
  await chats.costs(t, account, response.headers.get('x-request-id')!, helloNano);
});

const cutAlways = chats.addModel('gpt-sim+cut-0');

test('a stream that is always cut before its first word is a plain 502 in the end', async (t) => {
  const account = await chats.stack.createAccount();
  const { status, answer, requestId } = await chats.ask(account, cutAlways, { stream: true });
  t.is(status, 502);
  t.is(answer.error.code, 'upstream_error');
  await chats.costs(t, account, requestId, 0n);
});

const doubling = chats.addModel('gpt-sim+duplicates');

test('a vendor that sends its beginning, end and usage twice is passed on and paid once', async (t) => {
  const account = await chats.stack.createAccount();
  const more = { stream: true, stream_options: { include_usage: true } };
  const response = await chats.send(account, doubling, more);
  const { events, isDone, text } = await readSse(response);
  t.true(isDone);
  t.is(text, `You said: ${hello}`);
  t.is(events.filter((event) => event.choices?.[0]?.delta.role !== undefined).length, 1);
  t.is(events.filter((event) => event.choices?.[0]?.finish_reason).length, 1);
  t.is(events.filter((event) => event.usage).length, 1);
  await chats.costs(t, account, response.headers.get('x-request-id')!, helloNano);
});

const nervous = chats.addUpstream('betweenChunksTimeoutMs: 300');

for (const [what, model, status, code] of [
  ['cut after output', chats.addModel('gpt-sim+cut-3'), 502, 'upstream_error'],
  ['that breaks with an error', chats.addModel('gpt-sim+streamerror-3'), 502, 'upstream_error'],
  ['that falls silent', chats.addModel('gpt-sim+stall-3', { upstream: nervous }), 504, 'upstream_timeout'],
] as const) {
  test(`a stream ${what} ends with an error event, and what was generated is paid`, async (t) => {
    const account = await chats.stack.createAccount();
    const response = await chats.send(account, model, { stream: true });
    t.is(response.status, 200);
    const { events, isDone, text } = await readSse(response);
    t.is(text, 'You said:');
    t.false(isDone);
    const last = events.at(-1);
    t.is(last?.error?.code, code);
    t.truthy(last?.error?.message);
    t.truthy(last?.detail);
    t.is(events.filter((event) => event.error).length, 1);
    const requestId = response.headers.get('x-request-id')!;
    t.like(await findRow(chats.stack, requestId), {
      success: false,
      responseCode: status,
      errorCode: code,
      promptTokens: helloTokens,
      completionTokens: 3,
      counted: true,
    });
    // 10 × 13.37 + 3 × 42.42
    await chats.costs(t, account, requestId, 260_960n);
  });
}

const endless = chats.addModel('gpt-sim+noend');

test('a stream without an end is an error, though all words came', async (t) => {
  const account = await chats.stack.createAccount();
  const response = await chats.send(account, endless, { stream: true });
  const { events, isDone, text } = await readSse(response);
  t.is(text, `You said: ${hello}`);
  t.false(isDone);
  t.is(events.at(-1)?.error?.code, 'upstream_error');
  const row = await findRow(chats.stack, response.headers.get('x-request-id')!);
  t.like(row, { success: false, responseCode: 502 });
  t.true(row.costNano > 0n);
});
