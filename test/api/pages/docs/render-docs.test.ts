import { createHash } from 'node:crypto';
import test from 'ava';
import Type from 'typebox';
import { renderDocs } from '../../../../api/pages/docs/render-docs.ts';
import { errorKinds } from '../../../../shared/contract/error-kinds.ts';
import { buildDescription } from '../../../../api/description/build-description.ts';
import { findErrorCodes } from '../../../../api/description/error-responses.ts';
import type { Operation } from '../../../../shared/contract/operation.ts';
import { operations } from '../../../../api/contract/operations.ts';

const all: readonly Operation[] = Object.values(operations);
const { html: page, contentSecurityPolicy } = renderDocs(buildDescription(all, 'http://gateway.test'));

const idsOf = (markup: string): string[] => [...markup.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id!);

test('every operation has a section with its path, and a navigation link to it', (t) => {
  const ids = idsOf(page);
  for (const { operationId, path } of all) {
    t.true(ids.includes(operationId), operationId);
    t.true(page.includes(`href="#${operationId}"`), operationId);
    t.true(page.includes(path), path);
  }
});

test('operations that need no key are marked as such, and so are account area operations that need no session', (t) => {
  const accessOf = (operationId: string): string | undefined =>
    page
      .split(`<article class="operation" id="${operationId}">`)[1]
      ?.match(/<p class="access">([^<]*)</)?.[1];
  t.is(accessOf('listModels'), 'No key needed');
  t.is(accessOf('requestCode'), 'No key or session needed');
  t.is(accessOf('getWebUser'), 'Needs a web session');
});

test('ids are unique, and every internal link has a target', (t) => {
  const ids = idsOf(page);
  t.is(new Set(ids).size, ids.length);
  const targets = [...page.matchAll(/href="#([^"]*)"/g)].map(([, id]) => id!);
  t.deepEqual(
    targets.filter((id) => !ids.includes(id)),
    [],
  );
});

test('every error code of an operation is explained in both languages', (t) => {
  for (const code of new Set(all.flatMap(findErrorCodes))) {
    t.true(page.includes(`id="error-${code}"`), code);
    const escaped = errorKinds[code].ru.replaceAll('<', '&lt;').replaceAll('>', '&gt;');
    t.true(page.includes(escaped), code);
  }
});

test('the page has no script, loads nothing, and its Content-Security-Policy allows only its own style', (t) => {
  t.notRegex(page, /<script|<iframe|<img| on\w+=| style="|@import|url\(/i);
  const loaded = [...page.matchAll(/<link [^>]*href="([^"]*)"/g)].map(([, href]) => href!);
  t.true(loaded.every((href) => href.startsWith('data:')));
  const style = /<style>(.*?)<\/style>/s.exec(page)?.[1] ?? '';
  const hash = createHash('sha256').update(style).digest('base64');
  t.regex(contentSecurityPolicy, /^default-src 'none';/);
  t.true(contentSecurityPolicy.includes(`style-src 'sha256-${hash}'`));
  t.notRegex(contentSecurityPolicy, /script-src|unsafe|https?:|\*/);
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
  const { html: hostilePage } = renderDocs(buildDescription([operation], 'http://gateway.test'));
  t.notRegex(hostilePage, /<script|<img/);
  t.is(hostilePage.match(/<\/style>/g)?.length, 1);
});
