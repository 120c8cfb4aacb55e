import test from 'ava';
import { formatTable } from '../../../scripts/admin/format-table.ts';

const rows = [
  {
    id: 'small',
    active: true,
    aliases: ['vendor/small'],
    max_calls: 64,
    pricing: { type: 'tokens', prompt: 15 },
  },
  { id: 'large-one', active: false, aliases: [], max_calls: 8, pricing: { type: 'tokens', prompt: 150 } },
];

test('if a table is not too wide, it has one line per row', (t) => {
  t.is(
    formatTable(rows, 67),
    `
id         active  aliases       max calls  pricing
─────────  ──────  ────────────  ─────────  ───────────────────────
small      true    vendor/small  64         type tokens, prompt 15
large-one  false   –             8          type tokens, prompt 150
`.trim(),
  );
  t.is(
    formatTable(rows, 66),
    `
id         active  aliases       max    pricing
                                 calls
─────────  ──────  ────────────  ─────  ───────────────────────
small      true    vendor/small  64     type tokens, prompt 15
large-one  false   –             8      type tokens, prompt 150
`.trim(),
  );
});

test('if a table is too wide, empty columns are dropped and the widest ones are printed on lines below their rows', (t) => {
  t.is(
    formatTable(rows, 30),
    `
id         active  max
                   calls
─────────  ──────  ─────
small      true    64
  aliases  vendor/small
  pricing  type tokens, prompt
           15
large-one  false   8
  pricing  type tokens, prompt
           150
`.trim(),
  );
});

test('a field that is too long for a line breaks between words, never within one', (t) => {
  const word = 'x'.repeat(40);
  const text = formatTable([{ id: 'a', words: ['one', word, 'two'] }], 20);
  t.deepEqual(text.split('\n').slice(2), ['a', '  words  one,', `         ${word},`, '         two']);
});

test('nested rows become a table below their name, as wide as the terminal', (t) => {
  const text = formatTable({ id: 'a', events: [{ at: 'x'.repeat(9), label: null }], codes: ['b'] }, 20);
  t.deepEqual(text.split('\n').slice(1), [
    'events:',
    '  at         label',
    '  ─────────  ─────',
    `  ${'x'.repeat(9)}  –`,
    'codes:',
    '  b',
  ]);
});

test('no line of a typical table is wider than the terminal', (t) => {
  for (let width = 40; width < 80; width++) {
    const widest = Math.max(
      ...formatTable(rows, width)
        .split('\n')
        .map((line) => line.length),
    );
    t.true(widest <= width, `${widest} of ${width}`);
  }
});

test('an object is printed as a list of its fields, and an empty list as "none"', (t) => {
  t.is(formatTable({ id: 'a', free_requests: 3 }, 100), 'id             a\nfree requests  3');
  t.is(formatTable([], 100), 'none');
});
