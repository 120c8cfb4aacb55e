import test from 'ava';
import { Chats } from '../support/chats.ts';
import { findRow, readLoss } from '../support/observe.ts';

/** How much a chat may reserve of the balance, and how long an answer the vendor is then asked for. */

const chats = new Chats(test);
const plain = chats.addModel('gpt-sim');
/** A thousandth of a rouble a token. */
const costly = chats.addModel('gpt-sim', { pricing: 'pricing: { prompt: 1000, completion: 1000 }' });

test('a request that may cost more than the balance is a 402, and reaches no vendor', async (t) => {
  const account = await chats.stack.createAccount({ balance: '0.02' });
  const text = chats.uniqueText();
  const { status, answer, response } = await chats.ask(account, costly, { max_tokens: 16 }, text);
  t.is(status, 402);
  t.is(answer.error.code, 'insufficient_balance');
  t.regex(answer.error.message, /0\.02 RUB/);
  t.truthy(response.headers.get('x-ratelimit-remaining-requests'));
  t.is(chats.sentTo(text).length, 0);
  t.is(await readLoss(chats.stack, account.id, '0.02'), 0n);
});

test('without max_tokens the vendor gets the most that half of the balance affords', async (t) => {
  const account = await chats.stack.createAccount({ balance: '1' });
  const text = chats.uniqueText();
  t.is((await chats.ask(account, costly, {}, text)).status, 200);
  const bound = Number(chats.sentTo(text)[0]?.body?.['max_tokens']);
  // A thousandth of a rouble a token, the prompt's included.
  t.true(bound > 450 && bound < 500, `max_tokens ${bound}`);
});

test('one unbounded chat does not lock a small account out of its second request', async (t) => {
  const account = await chats.stack.createAccount({ balance: '1' });
  const answers = await Promise.all([chats.ask(account, costly), chats.ask(account, costly)]);
  t.deepEqual(
    answers.map((one) => one.status),
    [200, 200],
  );
});

const brief = chats.addModel('gpt-sim', { fields: 'max_output_tokens: 500,' });

test('without max_tokens a rich account is bounded by what the model can answer', async (t) => {
  const account = await chats.stack.createAccount();
  const text = chats.uniqueText();
  await chats.ask(account, brief, {}, text);
  t.is(chats.sentTo(text)[0]?.body?.['max_tokens'], 500);
  const unbounded = chats.uniqueText();
  await chats.ask(account, brief, { max_tokens: 0 }, unbounded);
  t.is(chats.sentTo(unbounded)[0]?.body?.['max_tokens'], 500);
});

test('the context bounds an answer together with its prompt', async (t) => {
  const account = await chats.stack.createAccount();
  const text = `${chats.uniqueText()} ${'cat '.repeat(5_000)}`;
  await chats.ask(account, plain, {}, text);
  const bound = Number(chats.sentTo(text.slice(0, 24))[0]?.body?.['max_tokens']);
  t.true(bound > 3_000 && bound + 5_000 < 8_192, `max_tokens ${bound}`);
});

for (const name of ['max_tokens', 'max_completion_tokens']) {
  test(`${name} of a caller’s own reaches the vendor as it is, and cuts the answer`, async (t) => {
    const account = await chats.stack.createAccount();
    const text = chats.uniqueText();
    const { answer } = await chats.ask(account, plain, { [name]: 2 }, text);
    const { body } = chats.sentTo(text)[0]!;
    t.is(body?.['max_tokens'] ?? body?.['max_completion_tokens'], 2);
    t.is(answer.choices[0]?.finish_reason, 'length');
    t.is(answer.usage.completion_tokens, 2);
  });
}

test('an explicit max_tokens that the balance does not cover is a 402 or cut to what it does', async (t) => {
  const account = await chats.stack.createAccount({ balance: '1' });
  const text = chats.uniqueText();
  const { status, requestId } = await chats.ask(account, costly, { max_tokens: 5_000 }, text);
  if (status === 402) {
    t.is(chats.sentTo(text).length, 0);
    return;
  }
  t.is(status, 200);
  t.true(Number(chats.sentTo(text)[0]?.body?.['max_tokens']) <= 990);
  t.is((await findRow(chats.stack, requestId)).shortfallNano, 0n);
});

test('several choices share what the reservation affords', async (t) => {
  const account = await chats.stack.createAccount({ balance: '1' });
  const text = chats.uniqueText();
  const { answer } = await chats.ask(account, costly, { n: 4 }, text);
  t.is(answer.choices.length, 4);
  t.deepEqual(
    answer.choices.map((choice) => choice.index),
    [0, 1, 2, 3],
  );
  t.true(Number(chats.sentTo(text)[0]?.body?.['max_tokens']) * 4 <= 500);
});
