import test from 'ava';
import { CountedTexts } from '../../../../api/endpoints/chat/counted-texts.ts';
import { PromptCounter } from '../../../../api/endpoints/chat/prompt-counter.ts';
import { parseCatalog } from '../../../../shared/catalog/parse-catalog.ts';
import { CountingTurn, countTokens } from '../../../../shared/pricing/count-tokens.ts';

const text = 'You are a patient teacher who explains everything twice.';
const ofAccount = (accountId: string, vocabulary = 'o200k_base') => ({ accountId, vocabulary });

/** Counts a text, and how often it had to be tokenized. */
function createCounter() {
  const countedTexts = new CountedTexts();
  let times = 0;
  const count = async (counted = text, countedFor = ofAccount('one'), tokens: number | null = 9) =>
    await countedTexts.count(countedFor, counted, () => {
      times += 1;
      return Promise.resolve(
        tokens === null ? null : { tokens, textBytes: counted.length, tokensInOtherVocabularies: tokens },
      );
    });
  return { count, times: () => times };
}

test('a text is tokenized once for an account and a vocabulary', async (t) => {
  const { count, times } = createCounter();
  const first = await count();
  t.is(first?.tokens, 9);
  t.is(await count(), first);
  t.is(times(), 1);
  await count(text, ofAccount('another'));
  await count(text, ofAccount('one', 'cl100k_base'));
  await count(`${text} `);
  t.is(times(), 4);
});

test('a text that is too long for its model is tokenized again', async (t) => {
  const { count, times } = createCounter();
  t.is(await count(text, ofAccount('one'), null), null);
  t.is((await count())?.tokens, 9);
  t.is(times(), 2);
});

test('texts that are faster to tokenize than to look up, or too long to hash at once, are not kept', async (t) => {
  const { count, times } = createCounter();
  for (const other of ['short', 'long '.repeat(20_000)]) {
    const before = times();
    await count(other);
    await count(other);
    t.is(times() - before, 2);
  }
});

test('a known text counts as much as a new one, and is rejected beyond the limit', async (t) => {
  const catalog = parseCatalog(
    'upstreams: { a: { kind: openai, baseUrl: http://localhost/v1 } }\n' +
      'models:\n  - { id: m, type: chat, context: 1000, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: a }] }\n',
    { fileName: 'catalog.yaml', env: {}, today: '2026-01-01' },
  );
  const countedTexts = new CountedTexts();
  const model = catalog.find('m')!;
  const counters = Array.from(
    { length: 2 },
    () => new PromptCounter(model, { turn: new CountingTurn(), countedTexts }),
  );
  for (const counter of counters) await counter.addText(text);
  const [first, second] = counters;
  t.is(first!.tokens, countTokens(text));
  t.is(second!.tokens, first!.tokens);
  t.is(second!.reservedTokens, first!.reservedTokens);
  t.is(second!.textBytes, Buffer.byteLength(text));
  t.is(await second!.countUpTo(text, first!.tokens - 1), null);
  t.is((await second!.countUpTo(text, first!.tokens))?.tokens, first!.tokens);
});
