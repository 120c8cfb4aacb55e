import { readFile } from 'node:fs/promises';
import test from 'ava';
import { parseCatalog } from '../../../shared/catalog/parse-catalog.ts';

const root = new URL('../../../../', import.meta.url);
const parse = (text: string, env: Record<string, string> = {}) =>
  parseCatalog(text, { env, fileName: 'catalog.yaml', today: '2026-11-21' });

const everyKey = { OPENAI_API_KEY: 'key', ANTHROPIC_API_KEY: 'key', GEMINI_API_KEY: 'key' };

test('the catalog of a fresh installation serves the models that need no key, and lists the others', async (t) => {
  const catalog = parse(await readFile(new URL('catalog.yaml', root), 'utf8'));
  const active = catalog.models.filter(({ routes }) => routes.length > 0).map(({ id }) => id);
  t.deepEqual(active, ['use-lite-en-512', 'demo-echo', 'demo-svg-image', 'demo-image-edit']);
  t.is(catalog.warnings.length, 3);
  t.regex(catalog.warnings[0] ?? '', /OPENAI_API_KEY is not set; inactive models: text-embedding-3-small, /);
  t.regex(catalog.warnings[1] ?? '', /ANTHROPIC_API_KEY is not set/);
  t.regex(catalog.warnings[2] ?? '', /GEMINI_API_KEY is not set/);
  t.deepEqual(catalog.find('demo-svg-image')?.sizes, ['256x256', '512x512', '1024x1024']);
  t.is(catalog.find('openai/text-embedding-3-small')?.dimensions?.default, 1536);
});

test('with every key set, the catalog of a fresh installation serves every model without a warning', async (t) => {
  const catalog = parse(await readFile(new URL('catalog.yaml', root), 'utf8'), everyKey);
  t.deepEqual(catalog.warnings, []);
  t.true(catalog.models.every(({ routes }) => routes.length > 0));
});

test('the catalog of a fresh installation offers no image model that OpenAI has retired', async (t) => {
  const catalog = parse(await readFile(new URL('catalog.yaml', root), 'utf8'), everyKey);
  const names = catalog.models.flatMap(({ id, routes }) => [id, ...routes.map(({ model }) => model)]);
  t.true(names.includes('gpt-image-2'));
  t.deepEqual(
    names.filter((name) => /^(?:gpt-image-1$|dall-e-)/.test(name)),
    [],
  );
});

test('the examples in the comments of the catalog are valid when uncommented', async (t) => {
  const text = await readFile(new URL('catalog.yaml', root), 'utf8');
  const catalog = parse(text.replaceAll(/^# {2}/gm, '  '), everyKey);
  t.deepEqual(catalog.warnings, []);
  t.is(catalog.find('qwen3-8b')?.routes.length, 2);
});

test('the complete catalogs in docs/catalog.md are valid', async (t) => {
  const page = await readFile(new URL('docs/catalog.md', root), 'utf8');
  const examples = [...page.matchAll(/^```yaml\n(upstreams:[\s\S]*?)^```/gm)].map((match) => match[1]!);
  t.true(examples.length > 0);
  for (const example of examples) {
    const env = Object.fromEntries([...example.matchAll(/env:(\w+)/g)].map((match) => [match[1]!, 'key']));
    t.deepEqual(parse(example, env).warnings, []);
  }
});
