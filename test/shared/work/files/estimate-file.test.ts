import test from 'ava';
import { estimateFile, type EstimateCatalog } from '../../../../shared/work/files/estimate-file.ts';
import type { BatchEndpoint } from '../../../../shared/contract/batch-terms.ts';
import { parseCatalog } from '../../../../shared/catalog/parse-catalog.ts';
import type { LineGroup } from '../../../../shared/work/files/file-verdict.ts';

const text = `
upstreams:
  vendor: { kind: openai, baseUrl: "http://127.0.0.1:1/v1", apiKeys: [key] }
models:
  - id: chat
    aliases: [vendor/chat]
    type: chat
    context: 100000
    pricing: { prompt: 10, completion: 100, overrides: [{ min_prompt_tokens: 1000, prompt: 20, completion: 200 }] }
    routes: [{ upstream: vendor, model: chat }]
  - { id: embedding, type: embedding, context: 8192, dimensions: { default: 8 }, pricing: { in_cost_per_million: 7 }, routes: [{ upstream: vendor, model: e }] }
  - id: image
    type: image
    context: 8192
    size: [512x512, 1024x1024]
    pricing: { type: image, cost_per_image_quality: { standard: { 512x512: 1, 1024x1024: 3 }, high: 5 } }
    routes: [{ upstream: vendor, model: i }]
  - { id: off, type: chat, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: vendor, model: o }] }
`;

const parsed = parseCatalog(text, { env: {}, fileName: 'catalog.yaml', today: '2026-11-28' });
const catalog: EstimateCatalog = {
  find: (id) => parsed.find(id),
  isActive: ({ id }) => id !== 'off',
};

const group = (fields: Partial<LineGroup>): LineGroup => ({
  model: 'chat',
  size: null,
  quality: null,
  lines: 1,
  characters: 0,
  tokens: 0,
  inputs: 0,
  messages: 0,
  choices: 1,
  limitedTokens: 0,
  unlimitedChoices: 0,
  ...fields,
});

const estimate = (
  groups: LineGroup[],
  endpoint: BatchEndpoint = '/v1/chat/completions',
  other: LineGroup | null = null,
) => estimateFile({ groups, other }, endpoint, catalog);

test('tokens are priced at the average length of a line, so that many short prompts do not reach the price of a long one', (t) => {
  const { models, ...total } = estimate([
    group({ lines: 100, tokens: 50_050, choices: 100, limitedTokens: 1_010 }),
  ]);
  t.deepEqual(total, {
    lines: 100,
    inputTokens: 50_050 + 100 * 3,
    outputTokens: 1_010,
    costNano: 50_350n * 10_000n + 1_010n * 100_000n,
  });
  t.is(models.length, 1);
  const long = estimate([group({ lines: 2, tokens: 4_000, choices: 2, limitedTokens: 20 })]);
  t.is(long.costNano, 4_006n * 20_000n + 20n * 200_000n);
});

test('what the formats of vendors add to messages and inputs is counted', (t) => {
  const chats = estimate([group({ lines: 10, messages: 25, tokens: 100 })]);
  t.is(chats.inputTokens, 100 + 10 * 3 + 25 * 4);
  t.is(chats.costNano, 230n * 10_000n);
  const { messages: _, ...earlier } = group({ lines: 10, tokens: 100 });
  t.is(estimate([earlier]).inputTokens, 100 + 10 * 7, 'files of earlier releases: a message a line');
  const inputs = estimate([group({ model: 'embedding', inputs: 3, tokens: 10 })], '/v1/embeddings');
  t.is(inputs.inputTokens, 10 + 3 * 2);
});

test('a chat without a limit is assumed to have 1024 output tokens a choice', (t) => {
  const { outputTokens } = estimate([
    group({ lines: 2, choices: 5, limitedTokens: 30, unlimitedChoices: 2 }),
  ]);
  t.is(outputTokens, 30 + 2_048);
});

test('embeddings cost their input, and images their number at the price of their size and quality', (t) => {
  const embeddings = estimate([group({ model: 'embedding', lines: 3, tokens: 10 })], '/v1/embeddings');
  t.is(embeddings.costNano, 10n * 7_000n);
  t.is(embeddings.outputTokens, 0);
  for (const [size, quality, roubles] of [
    [null, null, 3n],
    ['512x512', null, 1n],
    ['auto', 'auto', 3n],
    ['512x512', 'high', 5n],
  ] as const) {
    const { costNano } = estimate(
      [group({ model: 'image', size, quality, lines: 2, choices: 4 })],
      '/v1/images/generations',
    );
    t.is(costNano, 4n * roubles * 1_000_000_000n, `${size} ${quality}`);
  }
});

test('groups of a model and its other names are one row, and lines that cannot run cost nothing and say why', (t) => {
  const { models, lines, costNano } = estimate([
    group({ lines: 2, tokens: 10 }),
    group({ model: 'vendor/chat', lines: 3, tokens: 20, size: '1x1' }),
    group({ model: 'gone', tokens: 5 }),
    group({ model: 'embedding', tokens: 5 }),
    group({ model: 'off', tokens: 5 }),
    group({ model: null, tokens: 5 }),
  ]);
  t.is(lines, 9);
  t.is(costNano, 45n * 10_000n);
  t.deepEqual(
    models.map(({ model, lines, inputTokens, error }) => [model, lines, inputTokens, error?.code ?? null]),
    [
      ['chat', 5, 45, null],
      ['gone', 1, 5, 'model_not_found'],
      ['embedding', 1, 5, 'validation_failed'],
      ['off', 1, 5, 'model_disabled'],
      [null, 1, 5, 'model_not_found'],
    ],
  );
});

test('lines beyond the groups cost as much as the others on average', (t) => {
  const { models, costNano } = estimate(
    [group({ lines: 10, tokens: 100 })],
    undefined,
    group({ model: null, lines: 5, tokens: 60 }),
  );
  t.like(models[1], { model: 'other', lines: 5, inputTokens: 60, error: null });
  t.is(costNano, 195n * 10_000n);
});
