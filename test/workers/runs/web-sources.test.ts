import test from 'ava';
import type { ChatRequest } from '../../../shared/contract/chat.ts';
import { chooseSourcesMode, WebSources } from '../../../workers/runs/web-sources.ts';

const createRequest = (more: object): ChatRequest => ({ model: 'm', messages: [], ...more });

test("sources are listed if links are requested, annotated if OpenAI's format is requested, and otherwise hidden", (t) => {
  t.is(chooseSourcesMode(createRequest({ web_search: true })), 'listed');
  t.is(chooseSourcesMode(createRequest({ web_search: 'links' })), 'listed');
  t.is(chooseSourcesMode(createRequest({ web_search: 'no-links' })), 'hidden');
  t.is(chooseSourcesMode(createRequest({ web_search_options: {} })), 'annotated');
});

test('a response that must be JSON is not followed by a list', (t) => {
  const format = { type: 'json_schema' };
  t.is(chooseSourcesMode(createRequest({ web_search: true, response_format: format })), 'annotated');
  t.is(chooseSourcesMode(createRequest({ web_search: true, response_format: { type: 'text' } })), 'listed');
});

test('each page is listed once, in the order of the response, and no title or URL can break out of its link', (t) => {
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

test('sources that the vendor has annotated are not annotated again, and without a search nothing is added', (t) => {
  const sources = new WebSources();
  t.is(sources.conclude('listed', false), null);
  sources.add([{ url: 'https://a.example', title: 'First' }]);
  t.is(sources.conclude('hidden', false), null);
  t.is(sources.conclude('annotated', true), null);
  t.deepEqual(Object.keys(sources.conclude('annotated', false)!), ['annotations']);
  t.deepEqual(Object.keys(sources.conclude('listed', true)!), ['content']);
});
