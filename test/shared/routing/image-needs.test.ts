import test from 'ava';

import { parseCatalog } from '../../../shared/catalog/parse-catalog.ts';
import {
  countImageCalls,
  findServingImageRoutes,
  findUnmetImageNeed,
  type ImageRequirements,
} from '../../../shared/routing/image-needs.ts';

/** Every route used in the tests, by the name of its model. */
const catalog = parseCatalog(
  `
upstreams:
  openai: { kind: openai, baseUrl: "http://127.0.0.1:1/v1" }
  google: { kind: gemini, apiKeys: [k] }
  builtin: { kind: builtin }
models:
  - id: all
    type: image
    context: 8192
    size: [1024x1024]
    pricing: { type: image, cost_per_image: 1 }
    routes:
      - { upstream: google, model: gemini-image }
      - { upstream: google, model: gemini-lenient, drops: [mask] }
      - { upstream: openai, model: gpt-image-1 }
      - { upstream: openai, model: dall-e-2 }
      - { upstream: openai, model: dall-e-3 }
      - { upstream: openai, model: flux }
      - { upstream: openai, model: single, drops: [n] }
      - { upstream: builtin, model: demo-svg-image }
      - { upstream: builtin, model: demo-image-edit }
`,
  { env: {}, fileName: 'catalog.yaml', today: '2026-01-01' },
);
const routes = catalog.find('all')?.routes ?? [];
const findRoute = (model: string) => routes.find((route) => route.model === model)!;

const promptOnly: ImageRequirements = { inputs: 0, inputBytes: null, hasMask: false, background: null };
const findServingModels = (request: Partial<ImageRequirements>, candidates = routes): string[] =>
  findServingImageRoutes(candidates, { ...promptOnly, ...request }).map(({ model }) => model);

test('a request without input images can go to every model except one that only edits', (t) => {
  t.deepEqual(
    findServingModels({}),
    routes.map(({ model }) => model).filter((model) => model !== 'demo-image-edit'),
  );
});

test('a request with input images goes only to models that accept that many', (t) => {
  const one = [
    'gemini-image',
    'gemini-lenient',
    'gpt-image-1',
    'dall-e-2',
    'flux',
    'single',
    'demo-image-edit',
  ];
  t.deepEqual(findServingModels({ inputs: 1 }), one);
  t.deepEqual(
    findServingModels({ inputs: 2 }),
    one.filter((model) => model !== 'dall-e-2'),
  );
});

test('a request with a mask goes to models that support masks; one that drops the mask is used only if there is no other', (t) => {
  const masked = { inputs: 1, hasMask: true };
  t.deepEqual(findServingModels(masked), ['gpt-image-1', 'dall-e-2', 'flux', 'single', 'demo-image-edit']);
  t.deepEqual(findServingModels(masked, [findRoute('gemini-image'), findRoute('gemini-lenient')]), [
    'gemini-lenient',
  ]);
});

test('Gemini is excluded if the input images are over 20 MB in base64', (t) => {
  const inputs = { inputs: 1, inputBytes: 15_000_000 };
  t.true(findServingModels(inputs).includes('gemini-image'));
  t.false(findServingModels({ ...inputs, inputBytes: 15_000_001 }).includes('gemini-image'));
});

test('a transparent background is requested only from models that support it', (t) => {
  t.deepEqual(findServingModels({ background: 'transparent' }), ['gpt-image-1', 'flux', 'single']);
  t.true(findServingModels({ background: 'opaque' }).includes('dall-e-3'));
});

test('an unsupported feature of a route is reported with its field and a reason', (t) => {
  const request = { ...promptOnly, inputs: 1, hasMask: true };
  t.like(findUnmetImageNeed(findRoute('gemini-image'), request), {
    field: 'mask',
    why: 'does not support masks and edits the whole image',
  });
  t.like(findUnmetImageNeed(findRoute('demo-image-edit'), promptOnly), { field: 'image_url' });
  t.is(findUnmetImageNeed(findRoute('gpt-image-1'), request), null);
});

test('each image is a separate call if the model makes one image per call or its server does not support n', (t) => {
  const calls = routes.map((route) => [route.model, countImageCalls(route, 3)]);
  t.deepEqual(Object.fromEntries(calls), {
    'gemini-image': 3,
    'gemini-lenient': 3,
    'gpt-image-1': 1,
    'dall-e-2': 1,
    'dall-e-3': 3,
    flux: 1,
    single: 3,
    'demo-svg-image': 1,
    'demo-image-edit': 1,
  });
});
