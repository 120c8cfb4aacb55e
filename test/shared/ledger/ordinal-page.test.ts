import test from 'ava';
import { countOrdinals, findPage } from '../../../shared/ledger/ordinal-page.ts';

test('pages run from the newest row to the oldest, without a gap or an overlap', (t) => {
  const span = { oldest: 101, newest: 800 };
  t.is(countOrdinals(span), 700);
  t.deepEqual(findPage(span, 1, 300), { oldest: 501, newest: 800 });
  t.deepEqual(findPage(span, 2, 300), { oldest: 201, newest: 500 });
  t.deepEqual(findPage(span, 3, 300), { oldest: 101, newest: 200 });
  t.is(findPage(span, 4, 300), null);
  t.is(findPage(span, Number.MAX_SAFE_INTEGER, 300), null);
});

test('a page that is exactly full is the last one', (t) => {
  const span = { oldest: 1, newest: 40 };
  t.deepEqual(findPage(span, 2, 20), { oldest: 1, newest: 20 });
  t.is(findPage(span, 3, 20), null);
});

test('without rows there are no pages', (t) => {
  t.is(countOrdinals(null), 0);
  t.is(findPage(null, 1, 20), null);
});
