import test from 'ava';
import { isDisposable } from '../../../api/account-area/disposable-domains.ts';
import { normalizeEmail } from '../../../shared/encoding/email-address.ts';

const none: ReadonlySet<string> = new Set();

function isListed(text: string, domains = none): boolean {
  const read = normalizeEmail(text);
  if (!('email' in read)) throw new Error(`${text} is not an address`);
  return isDisposable(read.email, domains);
}

test('providers of disposable addresses are listed, in any case, with all their subdomains', (t) => {
  for (const domain of [
    'mailinator.com',
    'Mailinator.COM',
    'x.y.mailinator.com',
    'yopmail.com',
    'guerrillamail.com',
  ]) {
    t.true(isListed(`ann@${domain}`), domain);
  }
});

test('ordinary providers and forwarders are not listed', (t) => {
  const domains = `gmail.com mail.ru yandex.ru ya.ru rambler.ru outlook.com hotmail.com yahoo.com icloud.com proton.me
    gmx.de web.de qq.com 163.com fastmail.fm duck.com mozmail.com privaterelay.appleid.com example.com unmailinator.com`;
  for (const domain of domains.split(/\s+/)) t.false(isListed(`ann@${domain}`), domain);
});

test('the operator’s domains count with their subdomains, and no other domain does', (t) => {
  const domains = new Set(['rented.test', 'xn--e1afmkfd.test', 'tk']);
  for (const domain of ['rented.test', 'a.rented.test', 'пример.test', 'a.ПРИМЕР.test', 'anything.tk']) {
    t.true(isListed(`ann@${domain}`, domains), domain);
  }
  for (const domain of ['unrented.test', 'rented.test.com', 'tk.test', 'test.com'])
    t.false(isListed(`ann@${domain}`, domains), domain);
});
