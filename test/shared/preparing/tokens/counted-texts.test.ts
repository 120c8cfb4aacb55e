import test from 'ava';
import { CountedTexts, countLookUpChars } from '../../../../shared/preparing/tokens/counted-texts.ts';
import { PromptCounter } from '../../../../shared/preparing/tokens/prompt-counter.ts';
import { parseCatalog } from '../../../../shared/catalog/parse-catalog.ts';
import { CountingTurn, countTokens } from '../../../../shared/catalog/count-tokens.ts';

const text = 'You are a patient teacher who explains everything twice.';
const part = { tokens: 9, textBytes: 56, tokensInOtherVocabularies: 9, roomTokens: 9 };

const catalog = parseCatalog(
  'upstreams: { a: { kind: openai, baseUrl: http://localhost/v1 } }\n' +
    'models:\n  - { id: m, type: chat, context: 1000000, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: a }] }\n',
  { fileName: 'catalog.yaml', env: {}, today: '2026-01-01' },
);
const model = catalog.find('m')!;

test('a text is known for its account and its vocabulary alone', (t) => {
  const texts = new CountedTexts();
  const key = texts.keyOf('one', 'o200k_base', text)!;
  t.is(texts.find(key), null);
  texts.add(key, part);
  t.is(texts.find(texts.keyOf('one', 'o200k_base', text)!), part);
  for (const other of [
    texts.keyOf('another', 'o200k_base', text),
    texts.keyOf('one', 'cl100k_base', text),
    texts.keyOf('one', 'o200k_base', `${text} `),
  ])
    t.is(texts.find(other!), null);
});

test('texts that are faster to tokenize than to look up, or too long to hash at once, are not kept', (t) => {
  const texts = new CountedTexts();
  for (const other of ['short', 'long '.repeat(20_000)]) t.is(texts.keyOf('one', 'o200k_base', other), null);
});

test('a look-up is charged less than tokenizing, but never nothing', (t) => {
  t.is(countLookUpChars(0), 0);
  t.is(countLookUpChars(36), 36);
  t.is(countLookUpChars(8_000), 1_032);
});

test('a known text counts as much as a new one, and is rejected beyond the limit', async (t) => {
  const countedTexts = new CountedTexts();
  const createCounter = () => new PromptCounter(model, { turn: new CountingTurn(), countedTexts });
  const [first, second] = [createCounter(), createCounter()];
  for (const counter of [first, second]) await counter.addText(text);
  t.is(first.tokens, countTokens(text));
  t.is(second.tokens, first.tokens);
  t.is(second.reservedTokens, first.reservedTokens);
  t.is(second.textBytes, Buffer.byteLength(text));
  t.is(await second.countUpTo(text, first.tokens - 1), null);
  t.is((await second.countUpTo(text, first.tokens))?.tokens, first.tokens);
});

test('a request with many known texts waits before it begins, and yields to other work', async (t) => {
  const countedTexts = new CountedTexts();
  const texts = Array.from({ length: 3_000 }, (_, i) => `${text} ${i}`);
  const countAll = async (): Promise<number> => {
    let turns = 0;
    const turn = new CountingTurn(() => {
      turns += 1;
    });
    const counter = new PromptCounter(model, { turn, countedTexts });
    for (const one of texts) await counter.addText(one);
    return turns;
  };
  await countAll();
  // 3 000 texts of 60 characters are 180 KB, and looking them up is charged as 120 KB.
  t.true((await countAll()) >= 3);
});
