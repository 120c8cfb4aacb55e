import test, { type ExecutionContext } from 'ava';
import type { Catalog } from '../../../shared/catalog/catalog-schema.ts';
import { CatalogError, parseCatalog } from '../../../shared/catalog/parse-catalog.ts';
import { presentModel } from '../../../api/endpoints/public/models.ts';

const options = { env: {}, fileName: 'catalog.yaml', today: '2026-11-21' };

function parse(text: string, more: Partial<Parameters<typeof parseCatalog>[1]> = {}): Catalog {
  return parseCatalog(text, { ...options, ...more });
}

/**
 * A file with one upstream on lines 1 and 2 and one chat model, whose `id` is on line 4 and whose extra lines start
 * on 5.
 */
function fileOf(modelLines: string, upstreamLine = '  lab: { kind: builtin }'): string {
  const lines = modelLines.split('\n').map((line) => `    ${line}`);
  return ['upstreams:', upstreamLine, 'models:', '  - id: first', ...lines, ''].join('\n');
}

const chat = 'type: chat\ncontext: 100\npricing: { prompt: 1 }\nroutes: [{ upstream: lab }]';

function expectProblems(t: ExecutionContext, text: string, expected: string[]): void {
  const error = t.throws(() => parse(text), { instanceOf: CatalogError });
  t.deepEqual(error?.message.split('\n'), expected);
}

test('a model without options gets every default, and is published with every field of the contract', (t) => {
  const catalog = parse(fileOf(chat));
  t.deepEqual(catalog.warnings, []);
  const model = catalog.find('first')!;
  t.is(model.maxOutputTokens, 100);
  t.is(model.rpmCoefficient, 1);
  t.is(model.dimensions, null);
  t.is(model.embeddingCache, null);
  t.is(model.sizes, null);
  const [route] = model.routes;
  t.is(route?.weight, 1);
  t.is(route?.onDisconnect, 'cancel');
  t.is(route?.model, 'first');
  t.deepEqual(route?.upstream, {
    name: 'lab',
    kind: 'builtin',
    baseUrl: '',
    profile: null,
    headers: {},
    apiKeys: [],
    maxConcurrency: 16_384,
    maxConcurrencyPerKey: null,
    timeoutMs: 120_000,
    connectTimeoutMs: 10_000,
    firstByteTimeoutMs: 120_000,
    streamFirstByteTimeoutMs: 120_000,
    betweenChunksTimeoutMs: 60_000,
    drops: [],
    maxBatchInputs: 2048,
    maxBatchTokens: 300_000,
    imageUrls: 'pass',
    disconnectGraceMs: 0,
    sendsTraceparent: false,
  });
  t.deepEqual(presentModel(model, true), {
    id: 'first',
    object: 'model',
    created: 0,
    context: 100,
    size: null,
    type: 'chat',
    active: true,
    name: null,
    description: null,
    img: null,
    reasoning: null,
    reasoning_effort: null,
    image_quality: null,
    web_search: null,
    input_modalities: null,
    output_modalities: null,
    supported_file_types: null,
    max_image_count: null,
    max_file_count: null,
    architecture: null,
    quantization: null,
    pricing: {
      date_of_use: '2026-11-21',
      type: 'tokens',
      in_cost_per_million: null,
      out_cost_per_million: null,
      cost_per_million: null,
      cost_per_image: null,
      cost_per_image_quality: null,
      cost_per_second: null,
      cost_per_request: null,
      prompt: 1,
      completion: null,
      input_cache_read: null,
      input_cache_write: null,
      overrides: null,
      free_requests: false,
    },
    owned_by: 'model-gateway',
    rpm_coefficient: 1,
  });
});

test('an upstream has headers, a profile, and routes with fields of its own', (t) => {
  const upstream =
    '  lab: { kind: openai, baseUrl: "http://127.0.0.1:1/v1", dialect: groq, headers: { X-Tenant: env:TENANT } }';
  const model =
    'type: chat\ncontext: 100\npricing: { prompt: 1 }\nroutes: [{ upstream: lab, accepts: [n, extra] }]';
  const catalog = parseCatalog(fileOf(model, upstream), { ...options, env: { TENANT: ' acme ' } });
  const [route] = catalog.find('first')!.routes;
  t.deepEqual(route!.upstream.headers, { 'x-tenant': 'acme' });
  t.is(route!.profile, 'groq');
  t.deepEqual(route!.accepts, ['n', 'extra']);
  t.false(route!.drops.has('n'));
  t.true(route!.drops.has('logprobs'));
  const without = parseCatalog(fileOf(model, upstream), { ...options, env: {} });
  t.deepEqual(without.find('first')!.routes, []);
  t.regex(without.warnings.join(' '), /TENANT is not set/);
});

test('the fields of the contract are published as in the file', (t) => {
  const text = fileOf(`${chat}
created: 2024-01-25
owned_by: acme
max_output_tokens: 50
rpm_coefficient: 3
reasoning: true
reasoning_effort: { choices: [low, high] }
supported_file_types: [pdf]
max_file_count: 2
object: proxy`);
  const { published, maxOutputTokens, rpmCoefficient } = parse(text).find('first')!;
  t.like(published, { created: 1_706_140_800, owned_by: 'acme', reasoning: true, object: 'proxy' });
  t.deepEqual(published.reasoning_effort, { default: null, choices: ['low', 'high'] });
  t.deepEqual(published.supported_file_types, ['pdf']);
  t.is(published.max_file_count, 2);
  t.is(maxOutputTokens, 50);
  t.is(rpmCoefficient, 3);
});

test('a model that always searches is published as supporting search', (t) => {
  const read = (more: string): (boolean | null)[] => {
    const { published, alwaysMaySearch } = parse(fileOf(`${chat}${more}`)).find('first')!;
    return [published.web_search, alwaysMaySearch];
  };
  t.deepEqual(read('\nweb_search: always'), [true, true]);
  t.deepEqual(read('\nweb_search: true'), [true, false]);
  t.deepEqual(read('\nweb_search: false'), [false, false]);
  t.deepEqual(read(''), [null, false]);
});

test('a model is found by its id and by each alias', (t) => {
  const catalog = parse(fileOf(`${chat}\naliases: [acme/first, one]`));
  for (const name of ['first', 'acme/first', 'one']) t.is(catalog.find(name)?.id, 'first');
  t.is(catalog.find('two'), undefined);
});

test('a route specifies whether its calls continue after a disconnect, and its upstream specifies for how long', (t) => {
  const upstreamOf = (graceMs: number): string => `  lab: { kind: builtin, disconnectGraceMs: ${graceMs} }`;
  const model =
    'type: chat\ncontext: 9\npricing: { prompt: 1 }\nroutes: [{ upstream: lab, model: m, onDisconnect: drain }]';
  const [route] = parse(fileOf(model, upstreamOf(0))).find('first')!.routes;
  t.is(route?.onDisconnect, 'drain');
  t.is(route?.upstream.disconnectGraceMs, 0);
  t.is(route?.maxTokens, 'all');
  const error = t.throws(() => parse(fileOf(model.replace('drain', 'stop'), upstreamOf(20_001))));
  t.regex(error.message, /upstreams.lab.disconnectGraceMs must be <= 20000/);
  t.regex(error.message, /models\[0\].routes\[0\].onDisconnect must be/);
});

test('a route drops the parameters listed by it and by its upstream', (t) => {
  const text = fileOf(
    'type: chat\ncontext: 9\npricing: { prompt: 1 }\nroutes: [{ upstream: lab, model: m, weight: 2.5, drops: [top_p, seed] }]',
    '  lab: { kind: builtin, drops: [seed, user] }',
  );
  const [route] = parse(text).find('first')!.routes;
  t.deepEqual([...route!.drops].sort(), ['seed', 'top_p', 'user']);
  t.is(route?.weight, 2.5);
  t.is(route?.model, 'm');
});

test('dimensions with choices or an upper bound are adjustable', (t) => {
  const read = (dimensions: string) =>
    parse(fileOf(chat.replace('chat', `embedding\ndimensions: ${dimensions}`))).find('first')?.dimensions;
  t.deepEqual(read('{ default: 8 }'), { default: 8, adjustable: false });
  t.deepEqual(read('{ default: 8, max: 16 }'), { default: 8, adjustable: true, max: 16 });
  t.deepEqual(read('{ default: 8, choices: [16, 8] }'), {
    default: 8,
    adjustable: true,
    choices: [16, 8],
    max: 16,
  });
});

test('vectors are cached only if the file specifies it, by default for a day and in 100 MB', (t) => {
  const read = (lines: string) =>
    parse(fileOf(`${chat.replace('chat', 'embedding\ndimensions: { default: 8 }')}${lines}`)).find('first')
      ?.embeddingCache;
  t.is(read(''), null);
  t.deepEqual(read('\nembeddingCache: {}'), { ttlSeconds: 86_400, maxBytes: 100_000_000 });
  t.deepEqual(read('\nembeddingCache: { ttl: 60, maxBytes: 1000000 }'), {
    ttlSeconds: 60,
    maxBytes: 1_000_000,
  });
});

test('the start date of a price is its `since` field, otherwise the day on which the price was first seen, otherwise today', (t) => {
  const dayOf = (text: string, seen?: string) =>
    parse(text, { findPriceDay: () => seen }).find('first')?.pricing.date_of_use;
  const dated = fileOf(chat.replace('prompt: 1', 'prompt: 1, since: 2026-02-03'));
  t.is(dayOf(dated, '2026-05-05'), '2026-02-03');
  t.is(dayOf(fileOf(chat), '2026-05-05'), '2026-05-05');
  t.is(dayOf(fileOf(chat)), '2026-11-21');
});

test('the price version depends on what is charged, not on how it is written', (t) => {
  const versionOf = (prices: string) =>
    parse(fileOf(chat.replace('prompt: 1', prices))).find('first')?.priceVersion;
  const version = versionOf('prompt: 1, completion: 2, overrides: [{ min_prompt_tokens: 5, prompt: 3 }]');
  t.regex(version ?? '', /^[0-9a-f]{12}$/);
  for (const same of [
    'overrides: [{ prompt: 3, min_prompt_tokens: 5 }], completion: 2.0, prompt: 1',
    'type: tokens, prompt: 1, completion: 2, overrides: [{ min_prompt_tokens: 5, prompt: 3 }], free_requests: false',
    'prompt: 1, completion: 2, overrides: [{ min_prompt_tokens: 5, prompt: 3 }], since: 2020-01-01, cost_per_image: null',
  ]) {
    t.is(versionOf(same), version);
  }
  t.not(versionOf('prompt: 1, completion: 2, overrides: [{ min_prompt_tokens: 6, prompt: 3 }]'), version);
  t.not(versionOf('prompt: 1, completion: 2'), version);
});

test('anchors and merge keys avoid repetition', (t) => {
  const text = `upstreams: { lab: { kind: builtin } }
models:
  - &base { id: first, type: chat, context: 9, pricing: { prompt: 1 }, routes: [{ upstream: lab }] }
  - { <<: *base, id: second, context: 10 }
`;
  t.deepEqual(
    parse(text).models.map(({ id, context }) => [id, context]),
    [
      ['first', 9],
      ['second', 10],
    ],
  );
});

const twoRoutes = (keys: string): string => `upstreams:
  lab: { kind: openai, baseUrl: http://127.0.0.1:9/v1/, apiKeys: ${keys} }
  own: { kind: openai, baseUrl: http://127.0.0.1:8/v1 }
models:
  - { id: only, type: chat, context: 9, pricing: { prompt: 1 }, routes: [{ upstream: lab, model: a }] }
  - { id: both, type: chat, context: 9, pricing: { prompt: 1 }, routes: [{ upstream: lab }, { upstream: own }] }
`;

test('keys come from the environment or are written in the file', (t) => {
  const [lab, own] = parse(twoRoutes('[env:LAB_KEY, literal]'), { env: { LAB_KEY: 'from-env\n' } }).upstreams;
  t.deepEqual(lab?.apiKeys, ['from-env', 'literal']);
  t.is(lab?.baseUrl, 'http://127.0.0.1:9/v1');
  t.deepEqual(own?.apiKeys, []);
});

test('an upstream without its key is left out with one warning; its models stay listed without routes', (t) => {
  for (const env of [{}, { LAB_KEY: '' }]) {
    const catalog = parse(twoRoutes('[env:LAB_KEY]'), { env });
    t.deepEqual(catalog.warnings, ['upstream lab is skipped: LAB_KEY is not set; inactive models: only']);
    t.deepEqual(
      catalog.upstreams.map(({ name }) => name),
      ['own'],
    );
    t.deepEqual(catalog.find('only')?.routes, []);
    t.is(catalog.find('both')?.routes.length, 1);
  }
});

test('a variable named like an inherited object property counts as not set', (t) => {
  const catalog = parse(twoRoutes('[env:constructor]'), { env: {} });
  t.deepEqual(catalog.warnings, ['upstream lab is skipped: constructor is not set; inactive models: only']);
});

test('an upstream with some of its keys is used, with a warning', (t) => {
  const catalog = parse(twoRoutes('[env:LAB_KEY, env:LAB_KEY_2]'), { env: { LAB_KEY_2: 'two' } });
  t.deepEqual(catalog.warnings, ['upstream lab is used without some of its keys: LAB_KEY is not set']);
  t.deepEqual(catalog.upstreams[0]?.apiKeys, ['two']);
});

test('a variable whose value cannot be sent in a header counts as missing, and is not shown', (t) => {
  const catalog = parse(twoRoutes('[env:LAB_KEY]'), { env: { LAB_KEY: 'top\nsecret' } });
  t.deepEqual(catalog.warnings, [
    'upstream lab is skipped: LAB_KEY does not contain a usable key; inactive models: only',
  ]);
});

test('prices that would make requests free by mistake get a warning', (t) => {
  const warningsOf = (pricing: string, type = 'image') =>
    parse(
      fileOf(`type: ${type}\ncontext: 9\nsize: [1x1, 2x2]\npricing: ${pricing}\nroutes: [{ upstream: lab }]`),
    ).warnings;
  t.deepEqual(warningsOf('{ cost_per_image: 1 }'), [
    'catalog.yaml:8:5 models[0].pricing has no price of type tokens; set it to 0 if that is intended',
    'catalog.yaml:8:32 models[0].pricing.cost_per_image has no effect: pricing.type is tokens',
  ]);
  t.deepEqual(warningsOf('{ type: image, cost_per_image_quality: { standard: { 1x1: 3 } } }'), [
    'catalog.yaml:8:5 models[0].pricing makes these images free: standard 2x2; set cost_per_image to cover them',
  ]);
  t.deepEqual(warningsOf('{ type: image, cost_per_image: 1, cost_per_image_quality: { hd: 2 } }'), []);
  t.deepEqual(warningsOf('{ prompt: 0 }', 'chat'), []);
  t.deepEqual(warningsOf('{ prompt: 5, completion: 40 }'), [], 'tokens are counted for images, too');
  t.deepEqual(warningsOf('{ type: characters, cost_per_million: 1 }', 'chat'), [
    'catalog.yaml:8:22 models[0].pricing.type is not supported for models of type chat, so requests are free; the supported types are tokens, time, request',
  ]);
});

test('an image model with a fixed price that lists no size or quality gets one warning, which says what that means', (t) => {
  const upstream = '  lab: { kind: openai, baseUrl: "http://127.0.0.1:9/v1" }';
  const warningsOf = (lines: string, pricing = '{ type: image, cost_per_image: 1 }', from = upstream) =>
    parse(fileOf(`type: image\ncontext: 9\n${lines}pricing: ${pricing}\nroutes: [{ upstream: lab }]`, from))
      .warnings;
  const size = 'only 1024x1024 can be requested';
  const quality =
    'no quality can be requested, and the vendor’s default is used (set image_quality: null if that is intended)';
  const listed = 'size: [1024x1024]\n';
  const none = 'image_quality: null\n';
  t.deepEqual(warningsOf(''), [
    `catalog.yaml:4:5 models[0] lists no size and no image_quality: ${size}; ${quality}`,
  ]);
  t.deepEqual(warningsOf(listed), [`catalog.yaml:4:5 models[0] lists no image_quality: ${quality}`]);
  t.deepEqual(warningsOf(none), [`catalog.yaml:4:5 models[0] lists no size: ${size}`]);
  t.deepEqual(warningsOf(`${listed}${none}`), []);
  t.deepEqual(warningsOf(`${listed}image_quality: { choices: [low, high] }\n`), []);
  const table = '{ type: image, cost_per_image_quality: { standard: { 1024x1024: 1 } } }';
  t.deepEqual(warningsOf('', table), [], 'the prices name them');
  t.is(warningsOf('', '{ type: request, cost_per_request: 1 }').length, 1);
  for (const byUsage of ['{ prompt: 1, completion: 1 }', '{ type: time, cost_per_second: 1 }'])
    t.deepEqual(warningsOf('', byUsage), [], 'what the vendor counts is charged');
  t.deepEqual(warningsOf('', '{ type: image, cost_per_image: 1 }', '  lab: { kind: builtin }'), []);
});

const invalidFiles: [title: string, text: string, expected: string[]][] = [
  [
    'broken YAML',
    'upstreams:\n  lab: { kind: builtin\nmodels: []\n',
    ['catalog.yaml:3:1 flow map in block collection must be sufficiently indented and end with a }'],
  ],
  [
    'a tab as indentation',
    'upstreams:\n\tlab: 1\n',
    ['catalog.yaml:2:1 tabs are not allowed as indentation'],
  ],
  [
    'a name given twice',
    'upstreams: {}\nmodels: []\nupstreams: {}\n',
    ['catalog.yaml:3:1 map keys must be unique'],
  ],
  [
    'an alias without its anchor',
    'upstreams: *none\nmodels: []\n',
    ['catalog.yaml:1:12 invalid alias or anchor: quote the text if it is meant to begin with "*" or "&"'],
  ],
  ['an empty file', '', ['catalog.yaml:1:1 the file must be an object']],
  [
    'a file without its sections',
    '{}\n',
    ['catalog.yaml:1:1 upstreams is required', 'catalog.yaml:1:1 models is required'],
  ],
  [
    'an unknown field at the top',
    'upstreams: {}\nmodels: []\nmodel: []\n',
    ['catalog.yaml:3:1 model is not a known field; did you mean "models"?'],
  ],
  [
    'unknown fields of a model',
    fileOf(`${chat}\nalias: [x]\ncolour: red`),
    [
      'catalog.yaml:9:5 models[0].alias is not a known field; did you mean "aliases"?',
      'catalog.yaml:10:5 models[0].colour is not a known field',
    ],
  ],
  [
    'unknown fields of prices and routes',
    fileOf(
      'type: chat\ncontext: 9\npricing: { prompt: 1, date_of_use: x }\nroutes:\n  - upstream: lab\n    wieght: 2',
    ),
    [
      'catalog.yaml:7:27 models[0].pricing.date_of_use is not a known field; did you mean "since"?',
      'catalog.yaml:10:9 models[0].routes[0].wieght is not a known field; did you mean "weight"?',
    ],
  ],
  [
    'an unknown field of an upstream',
    fileOf(chat, '  lab: { kind: builtin, max_concurrency: 3 }'),
    ['catalog.yaml:2:25 upstreams.lab.max_concurrency is not a known field; did you mean "maxConcurrency"?'],
  ],
  [
    'missing fields',
    fileOf('type: chat'),
    [
      'catalog.yaml:4:5 models[0].context is required',
      'catalog.yaml:4:5 models[0].pricing is required',
      'catalog.yaml:4:5 models[0].routes is required',
    ],
  ],
  [
    'a missing field of an upstream, at its name',
    'upstreams:\n  lab:\n    maxConcurrency: 2\nmodels: []\n',
    ['catalog.yaml:2:3 upstreams.lab.kind is required'],
  ],
  [
    'values of a wrong type',
    fileOf(chat.replace('100', 'many')),
    ['catalog.yaml:6:14 models[0].context must be an integer'],
  ],
  [
    'a model of an unknown type',
    fileOf(chat.replace('chat', 'audio')),
    ['catalog.yaml:5:11 models[0].type must be one of: chat, vision, image, embedding'],
  ],
  [
    'an unknown kind of upstream',
    fileOf(chat, '  lab: { kind: opnai }'),
    ['catalog.yaml:2:16 upstreams.lab.kind must be one of: openai, anthropic, gemini, builtin'],
  ],
  [
    'a negative price',
    fileOf(chat.replace('prompt: 1', 'in_cost_per_million: -1')),
    ['catalog.yaml:7:37 models[0].pricing.in_cost_per_million must be >= 0'],
  ],
  [
    'a price with ten decimals',
    fileOf(chat.replace('prompt: 1', 'overrides: [{ min_prompt_tokens: 2, prompt: 0.0000000001 }]')),
    [
      'catalog.yaml:7:60 models[0].pricing.overrides[0].prompt must have at most nine decimals and be at most 9000000',
    ],
  ],
  [
    'a price beyond any balance',
    fileOf(chat.replace('prompt: 1', 'prompt: 1, cost_per_image_quality: { v1.5: { 1x1: 9000001 } }')),
    [
      'catalog.yaml:7:66 models[0].pricing.cost_per_image_quality.v1.5.1x1 must have at most nine decimals and be at most 9000000',
    ],
  ],
  [
    'a repeated override',
    fileOf(
      chat.replace(
        'prompt: 1',
        'overrides: [{ min_prompt_tokens: 2, prompt: 1 }, { min_prompt_tokens: 2, prompt: 3 }]',
      ),
    ),
    [
      'catalog.yaml:7:86 models[0].pricing.overrides[1].min_prompt_tokens repeats the value of an override above',
    ],
  ],
  [
    'an invalid date',
    fileOf(chat.replace('prompt: 1', 'prompt: 1, since: 2026-02-30')),
    ['catalog.yaml:7:34 models[0].pricing.since must be a valid date in the format YYYY-MM-DD'],
  ],
  [
    'an invalid created date',
    fileOf(`${chat}\ncreated: yesterday`),
    ['catalog.yaml:9:14 models[0].created must be a valid date in the format YYYY-MM-DD'],
  ],
  [
    'a weight of zero',
    fileOf(chat.replace('upstream: lab', 'upstream: lab, weight: 0')),
    ['catalog.yaml:8:39 models[0].routes[0].weight must be > 0'],
  ],
  [
    'no routes',
    fileOf(chat.replace('[{ upstream: lab }]', '[]')),
    ['catalog.yaml:8:5 models[0].routes must not be empty'],
  ],
  [
    'a route to an unknown upstream',
    fileOf(chat.replace('upstream: lab', 'upstream: lob')),
    [
      'catalog.yaml:8:26 models[0].routes[0].upstream refers to "lob", which is not in upstreams; did you mean "lab"?',
    ],
  ],
  [
    'an id given twice',
    `${fileOf(chat)}  - id: first\n${chat.replaceAll(/^/gm, '    ')}\n`,
    ['catalog.yaml:9:9 models[1].id repeats "first", which is already models[0].id'],
  ],
  [
    'an alias that is an id',
    fileOf(`${chat}\naliases: [one, first]`),
    ['catalog.yaml:9:20 models[0].aliases[1] repeats "first", which is already models[0].id'],
  ],
  [
    'ids that cannot be part of a path',
    fileOf(`${chat}\naliases: ["a b", status]`),
    [
      'catalog.yaml:9:15 models[0].aliases[0] must have at most 128 characters: letters, digits and . _ : / @ + -',
      'catalog.yaml:9:22 models[0].aliases[1] must not be "status", which is a path of the API',
    ],
  ],
  [
    'an embedding model without dimensions',
    fileOf(chat.replace('chat', 'embedding')),
    [
      'catalog.yaml:4:5 models[0].dimensions is required for an embedding model, such as {default: 1536, adjustable: true}',
    ],
  ],
  [
    'dimensions for another type of model',
    fileOf(`${chat}\ndimensions: { default: 3 }`),
    ['catalog.yaml:9:5 models[0].dimensions is only allowed for embedding models'],
  ],
  [
    'special tokens for inputs of another type of model',
    fileOf(`${chat}\nspecial_tokens: 2`),
    ['catalog.yaml:9:5 models[0].special_tokens is only allowed for embedding models'],
  ],
  [
    'a vector cache for another type of model',
    fileOf(`${chat}\nembeddingCache: { ttl: 60 }`),
    ['catalog.yaml:9:5 models[0].embeddingCache is only allowed for embedding models'],
  ],
  [
    'a vector cache outside its limits',
    fileOf(
      `${chat.replace('chat', 'embedding\ndimensions: { default: 8 }')}\nembeddingCache: { ttl: 2592001, maxBytes: 999999 }`,
    ),
    [
      'catalog.yaml:10:28 models[0].embeddingCache.ttl must be <= 2592000',
      'catalog.yaml:10:47 models[0].embeddingCache.maxBytes must be >= 1000000',
    ],
  ],
  [
    'a misspelt field of a vector cache',
    fileOf(
      `${chat.replace('chat', 'embedding\ndimensions: { default: 8 }')}\nembeddingCache: { ttl: 0, maxbytes: 5000000 }`,
    ),
    [
      'catalog.yaml:10:28 models[0].embeddingCache.ttl must be >= 1',
      'catalog.yaml:10:31 models[0].embeddingCache.maxbytes is not a known field; did you mean "maxBytes"?',
    ],
  ],
  [
    'contradictory dimensions',
    fileOf(
      `${chat.replace('chat', 'embedding')}\ndimensions: { default: 3, choices: [1, 2], max: 2, adjustable: false }`,
    ),
    [
      'catalog.yaml:9:28 models[0].dimensions.default must be one of: 1, 2',
      'catalog.yaml:9:31 models[0].dimensions.choices is only allowed for adjustable dimensions',
      'catalog.yaml:9:48 models[0].dimensions.max cannot be combined with choices',
      'catalog.yaml:9:48 models[0].dimensions.max is only allowed for adjustable dimensions',
      'catalog.yaml:9:53 models[0].dimensions.max must not be smaller than default',
    ],
  ],
  [
    'malformed sizes of an image model',
    fileOf(`${chat.replace('chat', 'image')}\nsize:\n  - 1024x1024\n  - 1024×768\n  - 0 x 512`),
    [
      'catalog.yaml:11:9 models[0].size[1] must be WIDTHxHEIGHT in pixels, such as 1024x1024',
      'catalog.yaml:12:9 models[0].size[2] must be WIDTHxHEIGHT in pixels, such as 1024x1024',
    ],
  ],
  [
    'an answer longer than the context',
    fileOf(`${chat}\nmax_output_tokens: 101`),
    ['catalog.yaml:9:24 models[0].max_output_tokens must not exceed context'],
  ],
  [
    'a default that is not among the choices',
    fileOf(`${chat}\nreasoning_effort: { default: max, choices: [low, high] }`),
    ['catalog.yaml:9:34 models[0].reasoning_effort.default must be one of: low, high'],
  ],
  [
    'an upstream without its URL',
    fileOf(chat, '  lab: { kind: openai }'),
    ['catalog.yaml:2:3 upstreams.lab.baseUrl is required for kind openai'],
  ],
  [
    'an invalid URL',
    fileOf(chat, '  lab: { kind: openai, baseUrl: "ftp://x" }'),
    ['catalog.yaml:2:33 upstreams.lab.baseUrl must be an http or https URL'],
  ],
  [
    'fields that a builtin upstream does not use',
    fileOf(chat, '  lab: { kind: builtin, baseUrl: "http://x", apiKeys: [] }'),
    [
      'catalog.yaml:2:25 upstreams.lab.baseUrl is not allowed for kind builtin',
      'catalog.yaml:2:46 upstreams.lab.apiKeys is not allowed for kind builtin',
    ],
  ],
  [
    'an upstream with an odd name',
    fileOf(chat, '  lab: { kind: builtin }\n  a b: { kind: builtin }'),
    [
      'catalog.yaml:3:3 upstreams.a b must have a name of at most 64 letters, digits, dots, dashes and underscores',
    ],
  ],
  [
    'fields for servers with the API of OpenAI at another one, and an unknown default to leave out',
    fileOf(
      'type: chat\ncontext: 100\npricing: { prompt: 1 }\nroutes: [{ upstream: lab, accepts: [n], drops: ["default:top_p"] }]',
    ),
    [
      'catalog.yaml:8:31 models[0].routes[0].accepts is only allowed for upstreams of kind openai',
      'catalog.yaml:8:53 models[0].routes[0].drops[0] must be a request field, or default:temperature',
    ],
  ],
];

for (const [title, text, expected] of invalidFiles) {
  test(`rejected with line and column: ${title}`, (t) => expectProblems(t, text, expected));
}

test('all problems of a file are reported together, in line order', (t) => {
  const many = Array.from({ length: 30 }, (_, i) => `  - { id: m${i}, type: audio }`).join('\n');
  const error = t.throws(() => parse(`models:\n${many}\nupstreams: { lab: { kind: x } }\n`), {
    instanceOf: CatalogError,
  });
  t.is(error?.problems.length, 30 * 4 + 1);
  const lines = error?.problems.map(({ line }) => line) ?? [];
  t.deepEqual(
    lines,
    lines.toSorted((a, b) => a - b),
  );
  t.deepEqual(error?.problems.at(-1), {
    line: 32,
    column: 27,
    message: 'upstreams.lab.kind must be one of: openai, anthropic, gemini, builtin',
  });
});

test('no error shows a secret, wherever it is in the file', (t) => {
  const secret = 'sk-SECRET';
  const upstream = (keys: string, baseUrl = 'http://127.0.0.1/v1'): string =>
    fileOf(chat, `  lab: { kind: openai, baseUrl: "${baseUrl}", apiKeys: ${keys} }`);
  const files = [
    upstream(`["${secret} x"]`),
    upstream(`["env:${secret}"]`),
    upstream(secret),
    upstream(`[{ name: ${secret} }]`),
    upstream('[]', `http://user:${secret}@host/v1`),
    upstream('[]', secret),
    upstream(`[*${secret}]`),
    upstream(`[!${secret} x]`),
    upstream(`["\\q${secret}"]`),
    upstream(`[@${secret}]`),
    upstream(`["${secret}`),
    upstream(`[${secret}`),
    upstream(`"a" ${secret}`),
    upstream(`|${secret}`),
    `%${secret}\n---\n${fileOf(chat)}`,
    `${fileOf(chat)}---\nkey: ${secret}\n`,
    `${fileOf(chat)}...\n${secret}\n`,
    fileOf(chat, `  lab: ${secret}`),
    secret,
  ];
  for (const text of files) {
    const error = t.throws(() => parse(text), { instanceOf: CatalogError }, text);
    t.false(error?.message.includes('SECRET'), error?.message);
    t.regex(error?.message ?? '', /^catalog\.yaml:\d+:\d+ /);
  }
});

test('nested aliases that expand exponentially are rejected before they exhaust the memory', (t) => {
  const levels = Array.from({ length: 12 }, (_, i) => {
    const item = i === 0 ? 'x' : `*a${i - 1}`;
    return `  a${i}: &a${i} [${Array.from({ length: 10 }, () => item).join(', ')}]`;
  });
  const error = t.throws(() => parse(`upstreams:\n${levels.join('\n')}\nmodels: []\n`), {
    instanceOf: CatalogError,
  });
  t.is(error?.message, 'catalog.yaml:1:1 aliases expand to too much data');
});

test('names of inherited object properties are treated like any other name', (t) => {
  const text = fileOf(`${chat}\nconstructor: 1\ntoString: 2`);
  const error = t.throws(() => parse(text), { instanceOf: CatalogError });
  t.is(error?.problems.length, 2);
  t.throws(() => parse(fileOf(chat.replace('upstream: lab', 'upstream: constructor'))), {
    instanceOf: CatalogError,
  });
});

test('Anthropic and Gemini need no URL, and have the usual defaults', (t) => {
  const { upstreams } = parse(`upstreams:
  claude: { kind: anthropic, apiKeys: [a] }
  google: { kind: gemini, apiKeys: [g], imageUrls: pass, maxConcurrency: 8, maxConcurrencyPerKey: 2 }
  proxy: { kind: anthropic, baseUrl: "https://proxy.example/anthropic/", imageUrls: fetch }
models: []
`);
  t.like(upstreams[0], {
    baseUrl: 'https://api.anthropic.com',
    maxConcurrency: 64,
    maxConcurrencyPerKey: null,
    imageUrls: 'pass',
  });
  t.like(upstreams[1], {
    baseUrl: 'https://generativelanguage.googleapis.com',
    maxBatchInputs: 100,
    maxConcurrency: 8,
    maxConcurrencyPerKey: 2,
    imageUrls: 'pass',
  });
  t.like(upstreams[2], { baseUrl: 'https://proxy.example/anthropic', imageUrls: 'fetch' });
});

test('the size of an embedding call is that of the profile, unless the upstream sets its own', (t) => {
  const { upstreams } = parse(`upstreams:
  tei: { kind: openai, dialect: tei, baseUrl: "http://tei.example/v1" }
  wide: { kind: openai, dialect: tei, baseUrl: "http://tei.example/v1", maxBatchInputs: 128 }
  mistral: { kind: openai, baseUrl: "https://api.mistral.ai/v1", apiKeys: [m] }
  other: { kind: openai, baseUrl: "http://other.example/v1" }
models: []
`);
  t.deepEqual(
    upstreams.map(({ maxBatchInputs, maxBatchTokens }) => [maxBatchInputs, maxBatchTokens]),
    [
      [32, 300_000],
      [128, 300_000],
      [512, 10_000],
      [2048, 300_000],
    ],
  );
});

test('a route may limit its concurrent calls and specify how its model is asked to reason', (t) => {
  const catalog = parse(
    fileOf(
      'type: chat\ncontext: 100\npricing: { prompt: 1 }\nroutes: [{ upstream: lab, thinking: effort, maxConcurrency: 3 }, { upstream: lab, model: other }]',
    ),
  );
  const [bounded, plain] = catalog.find('first')!.routes;
  t.like(bounded, { thinking: 'effort', maxConcurrency: 3, id: 'first lab first' });
  t.like(plain, { thinking: null, maxConcurrency: null, id: 'first lab other' });
});

test("a model of a type that its upstream's kind does not support is rejected at the route", (t) => {
  expectProblems(
    t,
    fileOf(
      'type: embedding\ncontext: 100\ndimensions: { default: 8 }\npricing: { prompt: 1 }\nroutes: [{ upstream: lab }]',
      '  lab: { kind: anthropic, apiKeys: [a] }',
    ),
    [
      'catalog.yaml:9:26 models[0].routes[0].upstream is of kind anthropic, which has no models of type embedding',
    ],
  );
});

test('thinking on a route and imageUrls on an upstream must be one of the known values', (t) => {
  expectProblems(
    t,
    fileOf(
      'type: chat\ncontext: 100\npricing: { prompt: 1 }\nroutes: [{ upstream: lab, thinking: much }]',
      '  lab: { kind: gemini, apiKeys: [a], imageUrls: maybe }',
    ),
    [
      'catalog.yaml:2:49 upstreams.lab.imageUrls must be one of: pass, fetch',
      'catalog.yaml:8:41 models[0].routes[0].thinking must be one of: budget, effort',
    ],
  );
});

test('shell-style keys, versions that a dialect adds itself, extensions with a dot and duplicate routes are rejected', (t) => {
  const text = `upstreams:
  claude: { kind: anthropic, baseUrl: "https://api.anthropic.com/v1", apiKeys: ["$KEY"] }
  google: { kind: gemini, baseUrl: "https://proxy.example/v1beta/", apiKeys: ["\${KEY}"] }
models:
  - id: first
    type: chat
    context: 100
    pricing: { prompt: 1 }
    supported_file_types: [.pdf]
    routes: [{ upstream: claude }, { upstream: google }, { upstream: claude, weight: 2 }]
`;
  const error = t.throws(() => parse(text), { instanceOf: CatalogError });
  const lines = error?.message.split('\n') ?? [];
  t.deepEqual(
    lines.map((line) => line.replace(/^\S+ /, '')),
    [
      'upstreams.claude.baseUrl must not include the version: kind anthropic adds it',
      'upstreams.claude.apiKeys[0] must be written as env:NAME to use the variable NAME',
      'upstreams.google.baseUrl must not include the version: kind gemini adds it',
      'upstreams.google.apiKeys[0] must be written as env:NAME to use the variable NAME',
      'models[0].supported_file_types[0] must be a lowercase file extension without a dot, such as pdf',
      'models[0].routes[2] repeats a route of this model: remove one, and increase the weight of the other',
    ],
  );
});
