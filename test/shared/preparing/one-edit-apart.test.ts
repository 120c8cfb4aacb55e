import test from 'ava';
import { isOneEditApart } from '../../../shared/preparing/one-edit-apart.ts';

test('names with one typing error are one edit apart, and others are not', (t) => {
  for (const typed of [
    'gpt-4o-mini',
    'GPT-4o-mini',
    'gpt-4o-min',
    'gpt-4o-minii',
    'gpt-4o_mini',
    'gpt-4o-mnii',
    'pt-4o-mini',
  ])
    t.true(isOneEditApart(typed, 'gpt-4o-mini'), typed);
  for (const typed of ['', 'gpt-4o', 'gpt-4-min', 'gtp-4o-mnii', 'xgpt-4o-minix', 'a'.repeat(100_000)])
    t.false(isOneEditApart(typed, 'gpt-4o-mini'), typed.slice(0, 20));
  t.true(isOneEditApart('', 'a'));
  t.false(isOneEditApart('', 'ab'));
});
