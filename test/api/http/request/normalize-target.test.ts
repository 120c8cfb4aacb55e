import type { IncomingMessage, ServerResponse } from 'node:http';
import test from 'ava';
import Koa from 'koa';
import { normalizeTarget } from '../../../../api/http/request/normalize-target.ts';

test('equivalent targets are normalized to the same form', (t) => {
  for (const [target, normal] of [
    ['/v1/models', '/v1/models'],
    ['/v1/models?type=chat', '/v1/models?type=chat'],
    ['http://host:80/v1/models?type=chat', '/v1/models?type=chat'],
    ['https://host', '/'],
    ['http://host?x', '/?x'],
    ['/%76%31/%6Dodels', '/v1/models'],
    // Reserved characters and double escapes stay different.
    ['/a%2Fb%2fc%25%37%36', '/a%2Fb%2fc%2576'],
    ['/%zz%', '/%zz%'],
    ['/a?%76', '/a?%76'],
    ['/a#b', '/a'],
    ['/\u00c3\u00a9 ', '/%C3%A9%20'],
    ['*', '/*'],
  ] as const) {
    t.is(normalizeTarget(target), normal, target);
  }
});

test('Koa finds a path in any normalized target', (t) => {
  const app = new Koa();
  const parts = [
    '//',
    'a@',
    '[',
    'x',
    ':99999999',
    '#',
    '?',
    '\u00a0',
    '%',
    '\\',
    'http:',
    'ftp:',
    '*',
    '/',
    '\t',
  ];
  for (let number = 1; number < 50_000; number++) {
    let target = '';
    for (let remainder = number; remainder > 0; remainder = Math.floor(remainder / parts.length)) {
      target += parts[remainder % parts.length];
    }
    const request = { url: normalizeTarget(target), headers: {} } as IncomingMessage;
    const { path } = app.createContext(request, {} as ServerResponse);
    if (!path.startsWith('/')) t.fail(target);
  }
  t.pass();
});
