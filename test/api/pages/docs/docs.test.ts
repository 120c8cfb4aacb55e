import test from 'ava';
import Type from 'typebox';
import { operations } from '../../../../api/contract/operations.ts';
import { buildDescription } from '../../../../api/description/build-description.ts';
import { findErrorCodes } from '../../../../api/description/error-responses.ts';
import { Docs } from '../../../../api/pages/docs/docs.ts';
import { readGuides } from '../../../../api/pages/docs/read-guides.ts';
import { guideNames } from '../../../../api/pages/guide-names.ts';
import { errorKinds } from '../../../../shared/contract/error-kinds.ts';
import type { Operation } from '../../../../shared/contract/operation.ts';

const all: readonly Operation[] = Object.values(operations);
const guides = (await readGuides('docs/guides'))!;
const catalog = { models: [], find: () => undefined };
const url = 'http://gateway.test';
const docs = new Docs(buildDescription(all, url), guides, catalog);
const page = docs.readPage('/docs', 'en').content.text;
const languages = ['en', 'ru'] as const;

const idsOf = (markup: string): string[] => [...markup.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id!);
const linksOf = (markup: string): string[] =>
  [...markup.matchAll(/ href="([^"]*)"/g)].map(([, href]) => href!);
const pathOf = (name: string | null): string => (name === null ? '/docs' : `/docs/${name}`);

test('every operation has a section with its path, and a navigation link to it', (t) => {
  const ids = idsOf(page);
  for (const { operationId, path } of all) {
    t.true(ids.includes(operationId), operationId);
    t.true(page.includes(`href="/docs#${operationId}"`), operationId);
    t.true(page.includes(path), path);
  }
});

test('the first request is a chat, and the body of an operation stands before its headers', (t) => {
  const [first] = page.split('id="authentication"');
  t.regex(first!, /<pre class="sample curl"[^>]*><code>curl http:\/\/gateway\.test\/v1\/chat\/completions/);
  const [, chat] = page.split('id="createChatCompletion"');
  const [body, headers] = ['<h4>Body</h4>', '<summary>Headers</summary>'].map((text) => chat!.indexOf(text));
  t.true(body! > 0 && body! < headers!);
  t.true(page.indexOf('id="chat"') < page.indexOf('id="images"'));
  t.true(page.indexOf('id="system"') < page.indexOf('id="admin"'));
});

test('operations that need no key are marked as such, and so are account area operations that need no session', (t) => {
  const accessOf = (operationId: string): string | undefined =>
    page
      .split(`<article class="operation" id="${operationId}">`)[1]
      ?.match(/<p class="access">([^<]*)</)?.[1];
  t.is(accessOf('listModels'), 'No key needed');
  t.is(accessOf('requestCode'), 'No key or session needed');
  t.is(accessOf('getWebUser'), 'Needs a web session');
  t.is(accessOf('createAccount'), 'Needs a token of the operator');
});

test('ids are unique, and every link between pages of the documentation has a target, in both languages', (t) => {
  for (const language of languages) {
    const pages = [null, ...guideNames].map((name) => {
      const { text } = docs.readPage(pathOf(name), language).content;
      return { path: pathOf(name), text, ids: idsOf(text) };
    });
    for (const { path, text, ids } of pages) {
      t.is(new Set(ids).size, ids.length, path);
      for (const href of linksOf(text)) {
        t.not(href, '#', path);
        if (href === '/v1/openapi.json' || !/^(?:#|\/docs)/.test(href)) continue;
        const [target, id] = href.split('#') as [string, string?];
        const found = target === '' ? { ids } : pages.find((other) => other.path === target);
        t.true(found !== undefined && (id === undefined || found.ids.includes(id)), `${path}: ${href}`);
      }
    }
  }
});

test('guides have the same sections and the same examples in both languages, with the address of the gateway', (t) => {
  for (const name of guideNames) {
    const [en, ru] = languages.map((language) => docs.readPage(pathOf(name), language).content.text);
    const count = (text: string, part: string): number => text.split(part).length;
    for (const part of ['<h2', '<figure', '<pre class="sample node', '<pre class="sample python', '<tr'])
      t.is(count(en!, part), count(ru!, part), `${name}: ${part}`);
    t.false(`${en}${ru}`.includes('gateway.example'), name);
  }
  t.regex(docs.readPage('/docs/first-request', 'ru').content.text, /http:\/\/gateway\.test\/v1/);
});

test('every error code of an operation is explained in both languages', (t) => {
  for (const code of new Set(all.flatMap(findErrorCodes))) {
    t.true(page.includes(`id="error-${code}"`), code);
    const escaped = errorKinds[code].ru.replaceAll('<', '&lt;').replaceAll('>', '&gt;');
    t.true(page.includes(escaped), code);
  }
});

test('the search finds operations by their fields, error codes, and sections of guides', (t) => {
  for (const language of languages) {
    const entries = docs.listSearchEntries(language);
    const find = (href: string): string => {
      const { title, text } = entries.find((entry) => entry.href === href)!;
      return `${title} ${text}`;
    };
    t.regex(find('/docs#createChatCompletion'), /\/v1\/chat\/completions .*\bmax_tokens\b/);
    t.regex(find('/docs#error-insufficient_balance'), /402/);
    t.regex(find('/docs/streaming'), /./);
    const pages = new Map(entries.map(({ href }) => [href.split('#')[0]!, '']));
    const text = [...pages.keys()].map((path) => docs.readPage(path, language).content.text).join('');
    for (const { href } of entries)
      if (href.includes('#')) t.true(text.includes(` id="${href.split('#')[1]}"`), href);
    t.true(JSON.stringify(entries).length < 200_000);
  }
});

test('nothing in a page needs an exception from the policy', (t) => {
  for (const name of [null, ...guideNames]) {
    const { text } = docs.readPage(pathOf(name), 'ru').content;
    t.notRegex(text, /<script|<iframe|<img|<style| on\w+=| style="/i);
  }
});

test('a model that the catalog lacks is replaced in examples by one of the same type', (t) => {
  const chat = { id: 'gpt-x', type: 'chat' };
  const models = { models: [chat], find: () => undefined } as unknown as ConstructorParameters<
    typeof Docs
  >[2];
  const { text } = new Docs(buildDescription(all, url), guides, models).readPage('/docs', 'en').content;
  t.false(text.includes('demo-echo'));
  t.true(text.includes('gpt-x') && text.includes('demo-svg-image'));
});

test('text in the contract that looks like markup is shown as text', (t) => {
  const hostile = `</pre></style><script>alert("1")</script><img src=x onerror='alert(2)'>`;
  const operation: Operation = {
    operationId: 'doIt',
    tag: 'System',
    summary: hostile,
    description: `${hostile} \`${hostile}\``,
    method: 'post',
    path: '/things/{thing_id}',
    auth: 'key',
    pathParameters: Type.Object({ thing_id: Type.String({ description: hostile }) }),
    query: Type.Object({ kind: Type.Optional(Type.String({ description: hostile, default: hostile })) }),
    body: Type.Object({
      [hostile]: Type.Unsafe<string>({ type: 'string', enum: [hostile], description: hostile }),
    }),
    response: Type.Object({ [hostile]: Type.String({ description: hostile }) }),
    errors: [],
    example: {
      path: { thing_id: hostile },
      query: { kind: hostile },
      body: { [hostile]: hostile },
      response: { [hostile]: hostile },
    },
  };
  const hostileGuide = `# ${hostile}\n\n${hostile}\n\n[x](javascript:alert(1)) ![x](https://other.test/x.png)\n`;
  const sources = new Map(guideNames.map((name) => [name, hostileGuide]));
  const hostileDocs = new Docs(buildDescription([operation], url), { en: sources, ru: sources }, catalog);
  for (const path of ['/docs', '/docs/errors']) {
    const { text } = hostileDocs.readPage(path, 'en').content;
    t.notRegex(text, /<script|<img|<\/style|javascript:alert\(1\)"/);
  }
});
