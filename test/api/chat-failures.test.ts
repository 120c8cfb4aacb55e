import test from 'ava';
import { Chats, hello, helloNano, helloTokens } from '../support/chats.ts';
import { findRow } from '../support/observe.ts';
import { readSse } from '../support/sse-events.ts';

/** Vendors that fail before, during and after output. */

const chats = new Chats(test);

const shortTimeout = chats.addUpstream('timeoutMs: 300');
/** An upstream with a revoked key, and a model whose vendor repeats that key in its error. */
const revokedKey = chats.addUpstream('', '[sk-secret-key-998877+revoked]');
const revokedKeyModel = chats.addModel('gpt-sim+echokey', { upstream: revokedKey });
const rejecting = chats.addModel('gpt-sim+fail-400+echokey');

const failures: readonly (readonly [failure: string, model: string, status: number, code: string])[] = [
  ['a vendor that fails', chats.addModel('gpt-sim+fail-500'), 502, 'upstream_error'],
  ['a vendor at its rate limit', chats.addModel('gpt-sim+fail-429+retry-20'), 502, 'upstream_error'],
  ['a vendor that sends garbage', chats.addModel('gpt-sim+garbage'), 502, 'upstream_error'],
  ['a vendor that rejects our key', revokedKeyModel, 502, 'upstream_error'],
  [
    'a vendor that times out',
    chats.addModel('gpt-sim+slow-3000', { upstream: shortTimeout }),
    504,
    'upstream_timeout',
  ],
  ['a vendor that rejects the request', rejecting, 400, 'upstream_rejected'],
];
for (const [failure, model, status, code] of failures) {
  for (const stream of [false, true]) {
    test(`${failure} is a ${status} ${code} and is not charged${stream ? ', streamed' : ''}`, async (t) => {
      const account = await chats.stack.createAccount();
      const text = chats.uniqueText();
      const {
        status: actualStatus,
        answer,
        requestId,
        response,
      } = await chats.ask(account, model, { stream }, text);
      t.is(actualStatus, status);
      t.is(answer.error.code, code);
      t.regex(response.headers.get('content-type') ?? '', /^application\/json/);
      const waits = failure.includes('rate limit') ? ['1', '100'] : [null, null];
      t.deepEqual(
        ['retry-after', 'retry-after-ms'].map((name) => response.headers.get(name)),
        waits,
      );
      t.false(/sk-|key-0123|998877/.test(JSON.stringify(answer)), JSON.stringify(answer));
      await chats.costs(t, account, requestId, 0n);
      const row = await findRow(chats.stack, requestId);
      t.like(row, { success: false, responseCode: status, errorCode: code, completionTokens: 0 });
      t.truthy(row.details);
      t.false(/sk-|998877/.test(row.details!), row.details!);
      const attempts = chats.sentTo(text).length;
      // A rejected key goes on cooldown, so only the first of these two tests calls the vendor.
      const minAttempts = model === revokedKeyModel ? 0 : 1;
      t.true(
        code === 'upstream_rejected' ? attempts === 1 : attempts >= minAttempts && attempts <= 3,
        `${attempts} attempts`,
      );
    });
  }
}

test('a rejection contains the vendor’s error message', async (t) => {
  const account = await chats.stack.createAccount();
  const { answer } = await chats.ask(account, rejecting);
  t.regex(answer.error.message, /This failure was requested\./);
});

for (const [failure, model] of [
  ['fails', chats.addModelWithSecond('gpt-sim+fail-500')],
  ['is at its rate limit', chats.addModelWithSecond('gpt-sim+fail-429')],
  ['sends garbage', chats.addModelWithSecond('gpt-sim+garbage')],
] as const) {
  test(`if the first route ${failure}, the second responds and the caller is charged once`, async (t) => {
    const account = await chats.stack.createAccount();
    const { status, answer, requestId } = await chats.ask(account, model);
    t.is(status, 200);
    t.is(answer.choices[0]?.message.content, `You said: ${hello}`);
    await chats.costs(t, account, requestId, helloNano);
  });
}

const modelWithBadKeys = chats.addModel('gpt-sim', {
  upstream: chats.addUpstream('', '[sk-one+exhausted, sk-two+revoked, sk-three-alive]'),
});

test('if some keys of an upstream are exhausted or revoked, another key is used', async (t) => {
  const account = await chats.stack.createAccount();
  const answers = await Promise.all(Array.from({ length: 12 }, () => chats.ask(account, modelWithBadKeys)));
  t.true(answers.every((one) => one.status === 200));
});

const interruptedModel = chats.addModelWithSecond('gpt-sim+cutbytes-40');

test('an interrupted response is retried on the other route', async (t) => {
  const account = await chats.stack.createAccount();
  const { status, answer, requestId } = await chats.ask(account, interruptedModel);
  t.is(status, 200);
  t.is(answer.choices[0]?.message.content, `You said: ${hello}`);
  await chats.costs(t, account, requestId, helloNano);
});

const interruptedBeforeOutput = chats.addModelWithSecond('gpt-sim+cut-1');

test('a stream interrupted before its first token continues seamlessly from the other route', async (t) => {
  const account = await chats.stack.createAccount();
  const response = await chats.send(account, interruptedBeforeOutput, { stream: true });
  t.is(response.status, 200);
  const { events, isDone, text } = await readSse(response);
  t.is(text, `You said: ${hello}`);
  t.true(isDone);
  t.is(events.filter((event) => event.choices?.[0]?.delta.role !== undefined).length, 1);
  t.is(new Set(events.map((event) => event.id)).size, 1);
  await chats.costs(t, account, response.headers.get('x-request-id')!, helloNano);
});

const alwaysInterrupted = chats.addModel('gpt-sim+cut-0');

test('a stream that is always interrupted before its first token is a plain 502', async (t) => {
  const account = await chats.stack.createAccount();
  const { status, answer, requestId } = await chats.ask(account, alwaysInterrupted, { stream: true });
  t.is(status, 502);
  t.is(answer.error.code, 'upstream_error');
  await chats.costs(t, account, requestId, 0n);
});

const doubling = chats.addModel('gpt-sim+duplicates');

test('duplicate start, end and usage events from a vendor are forwarded once and billed once', async (t) => {
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

const shortChunkTimeout = chats.addUpstream('betweenChunksTimeoutMs: 300');

for (const [failure, model, status, code] of [
  ['is interrupted after output', chats.addModel('gpt-sim+cut-3'), 502, 'upstream_error'],
  ['breaks with an error', chats.addModel('gpt-sim+streamerror-3'), 502, 'upstream_error'],
  ['stalls', chats.addModel('gpt-sim+stall-3', { upstream: shortChunkTimeout }), 504, 'upstream_timeout'],
] as const) {
  test(`if a stream ${failure}, it ends with an error event, and the caller pays for its output`, async (t) => {
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
    // 10 prompt tokens × 13.37 + 3 completion tokens × 42.42
    await chats.costs(t, account, requestId, 260_960n);
  });
}

const withoutEnd = chats.addModel('gpt-sim+noend');

test('a stream without an end marker is an error, even if all text arrived', async (t) => {
  const account = await chats.stack.createAccount();
  const response = await chats.send(account, withoutEnd, { stream: true });
  const { events, isDone, text } = await readSse(response);
  t.is(text, `You said: ${hello}`);
  t.false(isDone);
  t.is(events.at(-1)?.error?.code, 'upstream_error');
  const row = await findRow(chats.stack, response.headers.get('x-request-id')!);
  t.like(row, { success: false, responseCode: 502 });
  t.true(row.costNano > 0n);
});
