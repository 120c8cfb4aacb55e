import test from 'ava';
import fc from 'fast-check';
import { countBase64Bytes, isDataUri, parseDataUri } from '../../../shared/contract/data-uri.ts';

test('a data URI is parsed to its media type in lower case, without parameters, and its base64', (t) => {
  t.deepEqual(parseDataUri('data:image/png;base64,QUJD'), { mediaType: 'image/png', base64: 'QUJD' });
  t.deepEqual(parseDataUri('DATA:Image/SVG+xml;charset=utf-8;BASE64,QQ=='), {
    mediaType: 'image/svg+xml',
    base64: 'QQ==',
  });
  const word = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
  t.deepEqual(parseDataUri(`data:${word};base64,`), { mediaType: word, base64: '' });
});

test('text that is not a base64 data URI with a media type is rejected', (t) => {
  const texts = [
    '',
    'data:',
    'https://pictures.test/a.png',
    'data:;base64,QUJD',
    'data:image/png,QUJD',
    ' data:image/png;base64,QUJD',
  ];
  for (const text of [
    ...texts,
    'data:image;base64,QUJD',
    `data:image/png;a=${'b'.repeat(300)};base64,QUJD`,
  ]) {
    t.is(parseDataUri(text), null, text);
  }
});

test('base64 that could be decoded in more than one way is rejected', (t) => {
  const broken = [
    'QUJ',
    'QQ',
    'QQ=',
    'QR==',
    'QQ==QUJD',
    '====',
    'QU-_',
    'QU\nJD',
    'QUJD\n',
    'QUJD ',
    'QU%3D',
    'QU\u0000D',
    'QUJÄ',
  ];
  for (const base64 of broken)
    t.is(parseDataUri(`data:image/png;base64,${base64}`), null, JSON.stringify(base64));
});

test('all bytes are returned unchanged, and their number is known without decoding', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const base64 = Buffer.from(bytes).toString('base64');
      t.deepEqual(parseDataUri(`data:a/b;base64,${base64}`), { mediaType: 'a/b', base64 });
      t.is(countBase64Bytes(base64), bytes.length);
    }),
  );
});

test('the longest data URI is parsed, or rejected because of its last character, without a noticeable pause', (t) => {
  const base64 = Buffer.alloc(20_000_000, 1).toString('base64');
  const startedAtMs = performance.now();
  t.is(parseDataUri(`data:image/png;base64,${base64}`)?.base64.length, base64.length);
  t.is(parseDataUri(`data:image/png;base64,${base64.slice(0, -1)}!`), null);
  t.is(parseDataUri(`data:image/png${';a=b'.repeat(5_000_000)}`), null);
  t.true(performance.now() - startedAtMs < 5_000);
});

test('data URIs are recognized by their scheme in upper or lower case', (t) => {
  t.true(isDataUri('data:x') && isDataUri('DATA:x'));
  t.false(isDataUri('https://data:x') || isDataUri('dat'));
});
