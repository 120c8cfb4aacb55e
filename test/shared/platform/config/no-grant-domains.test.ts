import test from 'ava';
import { readNoGrantDomains } from '../../../../shared/platform/config/no-grant-domains.ts';

test('domains are normalised to lower-case ASCII, whatever their notation', (t) => {
  const text = 'Rented.Example, @mail.test.,*.кафе.example\n.a.b.test  tk, rented.example';
  const domains = new Set(['rented.example', 'mail.test', 'xn--80akq7b.example', 'a.b.test', 'tk']);
  t.is(readNoGrantDomains(text).domains.size, domains.size);
  t.true(readNoGrantDomains(text).domains.has('rented.example'));
  for (const domain of ['mail.test', 'a.b.test', 'tk']) t.true(readNoGrantDomains(text).domains.has(domain));
  t.true([...readNoGrantDomains(text).domains].some((domain) => /^xn--[a-z0-9]+\.example$/.test(domain)));
  t.deepEqual(readNoGrantDomains(text).wrong, []);
});

test('an empty list has no domains', (t) => {
  for (const text of ['', ' ', ' , '])
    t.deepEqual(readNoGrantDomains(text), { domains: new Set(), wrong: [] });
});

test('an entry that is not a domain is reported', (t) => {
  const wrong = [
    'ann@mail.test',
    'a..b',
    'http://mail.test',
    '-a.test',
    'a_b.test',
    '%41.test',
    '*',
    'a.*.test',
  ];
  t.deepEqual(readNoGrantDomains(`good.test,${wrong.join(',')}`), { domains: new Set(['good.test']), wrong });
});
