import test from 'ava';
import { shorten } from '../../../../shared/platform/runtime/shorten.ts';

test('a long text is shortened to its first 200 characters without splitting one', (t) => {
  t.is(shorten('short'), 'short');
  t.is(shorten('a'.repeat(200)), 'a'.repeat(200));
  t.is(shorten('a'.repeat(201)), `${'a'.repeat(200)}…`);
  t.is(shorten(`${'a'.repeat(199)}😀😀`), `${'a'.repeat(199)}…`);
  t.is(shorten(`${'a'.repeat(198)}😀😀`), `${'a'.repeat(198)}😀…`);
  t.is(shorten('abc😀', 4), 'abc…');
});
