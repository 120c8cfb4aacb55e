import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import { parseCatalog } from '../../../shared/catalog/parse-catalog.ts';
import { createVectorNamer, findVectorSpace } from '../../../workers/embeddings/vector-space.ts';

interface ModelOptions {
  readonly id?: string;
  readonly routes?: string;
  readonly more?: string;
  readonly cache?: string;
  readonly labUrl?: string;
}

function createModel(options: ModelOptions = {}): CatalogModel {
  const {
    id = 'emb',
    routes = '{ upstream: lab, model: a }, { upstream: own, model: b }',
    more = '',
    cache = 'embeddingCache: {},',
    labUrl = 'http://127.0.0.1:8/v1',
  } = options;
  const text = `
upstreams:
  lab: { kind: openai, baseUrl: "${labUrl}", apiKeys: [one] }
  own: { kind: openai, baseUrl: "http://127.0.0.1:9/v1" }
models:
  - { id: ${id}, type: embedding, context: 9, dimensions: { default: 8, adjustable: true }, ${cache} ${more || 'pricing: { prompt: 1 }'}, routes: [${routes}] }
`;
  return parseCatalog(text, { env: {}, fileName: 'catalog.yaml', today: '2026-01-01' }).models[0]!;
}

function nameIn(model: CatalogModel, dimensions: number | null = null, account = 'ann', text = 'x'): string {
  return createVectorNamer(findVectorSpace(model, dimensions)!, account)(text);
}

const name = nameIn(createModel());

test('a model without a cache has no vector space', (t) => {
  t.is(findVectorSpace(createModel({ cache: '' }), null), null);
  t.is(findVectorSpace(undefined, null), null);
});

test('the same account, model and text always give the same name', (t) => {
  t.is(nameIn(createModel()), name);
  t.regex(name, /^[\w-]{32}$/);
});

test('prices, weights, limits and the order of routes do not change a name', (t) => {
  for (const same of [
    createModel({ more: 'pricing: { prompt: 2 }' }),
    createModel({ routes: '{ upstream: own, model: b, weight: 3 }, { upstream: lab, model: a }' }),
    createModel({ cache: 'embeddingCache: { ttl: 5, maxBytes: 2000000 },' }),
  ])
    t.is(nameIn(same), name);
});

test('another account, model, text, number of dimensions or route target gives another name', (t) => {
  const names = [
    name,
    nameIn(createModel(), null, 'bob'),
    nameIn(createModel({ id: 'other' })),
    nameIn(createModel(), null, 'ann', 'y'),
    nameIn(createModel(), null, 'ann', ''),
    nameIn(createModel(), 8),
    nameIn(createModel(), 4),
    nameIn(createModel({ routes: '{ upstream: lab, model: a }' })),
    nameIn(createModel({ routes: '{ upstream: lab, model: c }, { upstream: own, model: b }' })),
    nameIn(createModel({ routes: '{ upstream: own, model: a }, { upstream: lab, model: b }' })),
    nameIn(createModel({ labUrl: 'http://127.0.0.1:7/v1' })),
  ];
  t.is(new Set(names).size, names.length);
});

test('names differ if texts differ in half a surrogate pair, or if the same characters are split differently between account and text', (t) => {
  const model = createModel();
  const texts = ['\uD83D', '\uD83C', '\uFFFD', '😀'].map((text) => nameIn(model, null, 'ann', text));
  t.is(new Set(texts).size, 4);
  t.not(nameIn(model, null, 'ann', 'bob'), nameIn(model, null, 'annb', 'ob'));
});
