import test from 'ava';
import { isNestedDeeper } from '../../../shared/encoding/json-record.ts';

test('the depth of a JSON value is the number of arrays and objects that enclose its innermost part', (t) => {
  for (const [levels, texts] of [
    [0, ['1', '"[[{"', 'null']],
    [1, ['[]', '{}', '[1]', '{"a":"{}"}']],
    [2, ['[1,[]]', '{"a":[1]}', '[{"b":null}]']],
    [100, [`${'['.repeat(100)}${']'.repeat(100)}`]],
  ] as const) {
    for (const text of texts) {
      const value: unknown = JSON.parse(text);
      t.false(isNestedDeeper(value, levels), text);
      if (levels > 0) t.true(isNestedDeeper(value, levels - 1), text);
    }
  }
});

test('a value of thousands of levels is measured without recursing through all of them', (t) => {
  t.true(isNestedDeeper(JSON.parse(`${'['.repeat(30_000)}${']'.repeat(30_000)}`), 100));
});
