import test from 'ava';
import type { ChatRequest } from '../../../shared/contract/chat.ts';
import { chooseSourcesMode, WebSources } from '../../../workers/runs/web-sources.ts';

const createRequest = (more: object): ChatRequest => ({ model: 'm', messages: [], ...more });

test('sources are listed if links were requested, annotated for OpenAI-style requests, and hidden otherwise', (t) => {
  t.is(chooseSourcesMode(createRequest({ web_search: true })), 'listed');
  t.is(chooseSourcesMode(createRequest({ web_search: 'links' })), 'listed');
  t.is(chooseSourcesMode(createRequest({ web_search: 'no-links' })), 'hidden');
  t.is(chooseSourcesMode(createRequest({ web_search_options: {} })), 'annotated');
});

test('no list of sources is added to a response that must be JSON', (t) => {
  const format = { type: 'json_schema' };
  t.is(chooseSourcesMode(createRequest({ web_search: true, response_format: format })), 'annotated');
  t.is(chooseSourcesMode(createRequest({ web_search: true, response_format: { type: 'text' } })), 'listed');
});

test('each page is listed once, in order of appearance, and titles and URLs are escaped', (t) => {
  const sources = new WebSources();
  sources.add([{ url: 'https://a.example/x', title: 'First' }]);
  sources.add([
    { url: 'https://a.example/x', title: 'Again' },
    { url: 'https://b.example/(y)', title: 'A ](https://evil.example) trick' },
    { url: 'javascript:alert(1)', title: 'no page' },
    { url: 'https://c.example/z', title: null },
  ]);
  const delta = sources.conclude('listed', false)!;
  t.is(
    delta['content'],
    '\n\nSources:\n1. [First](https://a.example/x)\n' +
      '2. [A (https://evil.example) trick](https://b.example/%28y%29)\n3. [c.example](https://c.example/z)',
  );
  t.is((delta['annotations'] as unknown[]).length, 3);
});

test('sources annotated by the vendor are not annotated again, and nothing is added without a search', (t) => {
  const sources = new WebSources();
  t.is(sources.conclude('listed', false), null);
  sources.add([{ url: 'https://a.example', title: 'First' }]);
  t.is(sources.conclude('hidden', false), null);
  t.is(sources.conclude('annotated', true), null);
  t.deepEqual(Object.keys(sources.conclude('annotated', false)!), ['annotations']);
  t.deepEqual(Object.keys(sources.conclude('listed', true)!), ['content']);
});
