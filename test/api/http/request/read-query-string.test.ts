import test from 'ava';
import {
  maxQueryLength,
  maxQueryParameters,
  readQueryString,
} from '../../../../api/http/request/read-query-string.ts';
import type { AppError } from '../../../../shared/contract/errors.ts';

test('a query becomes an object, and a repeated parameter a list', (t) => {
  t.deepEqual(readQueryString(''), {});
  t.deepEqual(readQueryString('type=chat&page=2'), { type: 'chat', page: '2' });
  t.deepEqual(readQueryString('a=1&b=x%20y+z&a=2&a=3&c'), { a: ['1', '2', '3'], b: 'x y z', c: '' });
  t.deepEqual(readQueryString('a=%zz&&b==1&%C3%A9=%ff'), { a: '%zz', b: '=1', é: '\ufffd' });
});

test('a parameter with the name of an inherited property is an ordinary one', (t) => {
  const query = readQueryString('__proto__=1&constructor=2');
  t.deepEqual(Object.entries(query), [
    ['__proto__', '1'],
    ['constructor', '2'],
  ]);
  t.is(Object.getPrototypeOf(query), Object.prototype);
});

test('a query with too many parameters or characters is refused, and the error says what is wrong with what', (t) => {
  t.is(
    Object.keys(readQueryString(Array.from({ length: maxQueryParameters }, (_, i) => `p${i}`).join('&')))
      .length,
    maxQueryParameters,
  );
  for (const [text, message] of [
    ['a&'.repeat(maxQueryParameters), /^The query has more than 64 parameters\. Send only/],
    [`a=${'b'.repeat(maxQueryLength)}`, /^The query is longer than 4096 characters\. Send only/],
  ] as const) {
    const error = t.throws<AppError>(() => readQueryString(text));
    t.is(error.code, 'validation_failed');
    t.regex(error.message, message);
    t.deepEqual(
      error.issues.map(({ loc }) => loc),
      [['query']],
    );
  }
});
