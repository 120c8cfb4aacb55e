import test from 'ava';
import { Chats } from '../support/chats.ts';
import { findRow, readAmountCharged } from '../support/observe.ts';

/** The part of the balance that a chat may reserve, and the resulting output limit sent to the vendor. */

const chats = new Chats(test);
const plain = chats.addModel('gpt-sim');
/** A thousandth of a rouble per token. */
const costly = chats.addModel('gpt-sim', { pricing: 'pricing: { prompt: 1000, completion: 1000 }' });

test('a request that may cost more than the balance is a 402 and does not reach a vendor', async (t) => {
  const account = await chats.stack.createAccount({ balance: '0.02' });
  const text = chats.uniqueText();
  const { status, answer, response } = await chats.ask(account, costly, { max_tokens: 16 }, text);
  t.is(status, 402);
  t.is(answer.error.code, 'insufficient_balance');
  t.regex(answer.error.message, /0\.02 RUB/);
  t.truthy(response.headers.get('x-ratelimit-remaining-requests'));
  t.is(chats.sentTo(text).length, 0);
  t.is(await readAmountCharged(chats.stack, account.id, '0.02'), 0n);
});

test('without max_tokens, the vendor gets the maximum that half of the balance covers', async (t) => {
  const account = await chats.stack.createAccount({ balance: '1' });
  const text = chats.uniqueText();
  t.is((await chats.ask(account, costly, {}, text)).status, 200);
  const maxTokens = Number(chats.sentTo(text)[0]?.body?.['max_tokens']);
  // Half of the balance pays for 500 tokens, including those of the prompt.
  t.true(maxTokens > 450 && maxTokens < 500, `max_tokens ${maxTokens}`);
});

test('a chat without max_tokens leaves a small account enough balance for a second one at the same time', async (t) => {
  const account = await chats.stack.createAccount({ balance: '1' });
  const answers = await Promise.all([chats.ask(account, costly), chats.ask(account, costly)]);
  t.deepEqual(
    answers.map((one) => one.status),
    [200, 200],
  );
});

const shortOutput = chats.addModel('gpt-sim', { fields: 'max_output_tokens: 500,' });

test('without max_tokens, an account with a large balance is limited by the model’s max_output_tokens', async (t) => {
  const account = await chats.stack.createAccount();
  const text = chats.uniqueText();
  await chats.ask(account, shortOutput, {}, text);
  t.is(chats.sentTo(text)[0]?.body?.['max_tokens'], 500);
  const unlimited = chats.uniqueText();
  await chats.ask(account, shortOutput, { max_tokens: 0 }, unlimited);
  t.is(chats.sentTo(unlimited)[0]?.body?.['max_tokens'], 500);
});

test('the context size limits the sum of prompt and output', async (t) => {
  const account = await chats.stack.createAccount();
  const text = `${chats.uniqueText()} ${'cat '.repeat(5_000)}`;
  await chats.ask(account, plain, {}, text);
  const maxTokens = Number(chats.sentTo(text.slice(0, 24))[0]?.body?.['max_tokens']);
  t.true(maxTokens > 3_000 && maxTokens + 5_000 < 8_192, `max_tokens ${maxTokens}`);
});

for (const name of ['max_tokens', 'max_completion_tokens']) {
  test(`a caller’s ${name} reaches the vendor unchanged and limits the output`, async (t) => {
    const account = await chats.stack.createAccount();
    const text = chats.uniqueText();
    const { answer } = await chats.ask(account, plain, { [name]: 2 }, text);
    const { body } = chats.sentTo(text)[0]!;
    t.is(body?.['max_tokens'] ?? body?.['max_completion_tokens'], 2);
    t.is(answer.choices[0]?.finish_reason, 'length');
    t.is(answer.usage.completion_tokens, 2);
  });
}

test('an explicit max_tokens that the balance does not cover is a 402, or is reduced to what it covers', async (t) => {
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

test('if several choices are requested, the reserved amount is divided among them', async (t) => {
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
