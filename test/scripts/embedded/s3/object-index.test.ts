import { assert, constantFrom, integer, property, string, uniqueArray } from 'fast-check';
import test from 'ava';
import { compareUtf8, ObjectIndex } from '../../../../scripts/embedded/s3/object-index.ts';
import type { ListQuery } from '../../../../scripts/embedded/s3/object-index.ts';

const entry = { size: 1, etag: 'x', lastModifiedMs: 0 };

test('keys compare by their UTF-8 bytes', (t) => {
  assert(
    property(string({ unit: 'binary' }), string({ unit: 'binary' }), (a, b) => {
      const expected = Buffer.compare(Buffer.from(a), Buffer.from(b));
      return Math.sign(compareUtf8(a, b)) === expected;
    }),
  );
  t.true(compareUtf8('\u{ffff}', '\u{10000}') < 0);
});

const keys = uniqueArray(
  string({ unit: constantFrom('a', 'b', '/', '\u{10ffff}'), minLength: 1, maxLength: 6 }),
  { maxLength: 40 },
);

test('a listing read in pages of any size equals the listing read in one go, with each entry once', (t) => {
  assert(
    property(
      keys,
      constantFrom('', 'a', 'a/'),
      constantFrom('', '/', 'b/'),
      integer({ min: 1, max: 5 }),
      (keys, prefix, delimiter, maxKeys) => {
        const index = new ObjectIndex();
        for (const key of keys) index.set(key, entry);
        const isLive = (key: string) => !key.endsWith('b');
        const expected = new Set<string>();
        for (const key of keys.filter((key) => isLive(key) && key.startsWith(prefix)).sort(compareUtf8)) {
          const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
          expected.add(end === -1 ? `key ${key}` : `prefix ${key.slice(0, end + delimiter.length)}`);
        }
        const found: string[] = [];
        let after: ListQuery['after'];
        do {
          const page = index.list({ prefix, delimiter, maxKeys, after }, isLive);
          if (page.contents.length + page.commonPrefixes.length > maxKeys) return false;
          found.push(...page.contents.map(({ key }) => `key ${key}`));
          found.push(...page.commonPrefixes.map((commonPrefix) => `prefix ${commonPrefix}`));
          after = page.next;
        } while (after !== undefined);
        return found.length === expected.size && found.every((item) => expected.has(item));
      },
    ),
  );
  t.pass();
});

test('a listing after a key has only later keys, and a page of zero keys is not marked as truncated', (t) => {
  const index = new ObjectIndex();
  for (const key of ['a', 'b', 'c']) index.set(key, entry);
  const all = () => true;
  const page = index.list({ prefix: '', delimiter: '', maxKeys: 10, after: { key: 'a' } }, all);
  t.deepEqual(
    page.contents.map(({ key }) => key),
    ['b', 'c'],
  );
  t.is(index.list({ prefix: '', delimiter: '', maxKeys: 0 }, all).next, undefined);
});
