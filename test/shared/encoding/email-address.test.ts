import test from 'ava';
import fc from 'fast-check';
import { normalizeEmail } from '../../../shared/encoding/email-address.ts';

const accepted: [text: string, email: string][] = [
  ['name@example.com', 'name@example.com'],
  ['  Name.Surname+Tag@EXAMPLE.Com ', 'name.surname+tag@example.com'],
  ["o'brien_{x}~1@mail.example.co.uk", "o'brien_{x}~1@mail.example.co.uk"],
  ['\u200b\ufeffname@example.com\u00a0\u2060', 'name@example.com'],
  ['root@localhost', 'root@localhost'],
  ['mail@Пример.РФ', 'mail@xn--e1afmkfd.xn--p1ai'],
  ['mail@faß.de', 'mail@xn--fa-hia.de'],
  ['mail@日本。jp', 'mail@xn--wgv71a.jp'],
  ['mail@xn--e1afmkfd.xn--p1ai', 'mail@xn--e1afmkfd.xn--p1ai'],
  ['mail@1and1.com', 'mail@1and1.com'],
];

for (const [text, email] of accepted) {
  test(`${JSON.stringify(text)} is normalized to ${email}`, (t) => {
    t.deepEqual(normalizeEmail(text), { email });
  });
}

const rejectedTexts: [what: string, texts: string[]][] = [
  [
    'line breaks',
    ['a@example.com\r\nBcc: b@example.com', 'a\n@example.com', 'a@example.com\n', 'a\0@example.com'],
  ],
  ['a name beside the address', ['Ann <a@example.com>', '<a@example.com>', 'a@example.com (Ann)']],
  ['quoted local parts', ['"a b"@example.com', '"a"@example.com', 'a\\@b@example.com']],
  ['lists', ['a@example.com,b@example.com', 'a@example.com;', 'a@example.com, ']],
  [
    'spaces inside',
    ['a b@example.com', 'a@exam ple.com', 'a@ example.com', 'a\u2028b@example.com', 'a\u00a0b@example.com'],
  ],
  ['no @, or several', ['', ' ', 'example.com', 'a@b@example.com', 'a@@example.com', '@']],
  ['nothing before the @', ['@example.com']],
  ['misplaced dots', ['.a@example.com', 'a.@example.com', 'a..b@example.com']],
  [
    'letters beyond ASCII before the @',
    ['почта@пример.рф', 'é@example.com', 'e\u0301@example.com', '\u212a@example.com'],
  ],
  [
    'IP addresses as domains',
    ['a@[127.0.0.1]', 'a@[IPv6:::1]', 'a@127.0.0.1', 'a@0x7f.1', 'a@2130706433', 'a@1.1'],
  ],
  [
    'invalid domains',
    ['a@', 'a@example', 'a@.com', 'a@example..com', 'a@example.com.', 'a@-a.com', 'a@a-.com', 'a@a_b.com'],
  ],
  [
    'characters valid only in a URL',
    ['a@ex%41mple.com', 'a@example.com/x', 'a@example.com:25', 'a@example.com?x', 'a@example.com#x'],
  ],
  [
    'malformed or empty internationalized domains',
    ['a@xn--a.com', 'a@\u00ad.com', 'a@exa\u200bmple.com', 'a@\ud800.com'],
  ],
  [
    'parts that are too long',
    [`${'a'.repeat(65)}@example.com`, `a@${'b'.repeat(64)}.com`, `a@${'b'.repeat(400)}`],
  ],
];

for (const [what, texts] of rejectedTexts) {
  test(`rejected: ${what}`, (t) => {
    for (const text of texts) {
      const result = normalizeEmail(text);
      t.true('problemEn' in result && result.problemEn.startsWith('must '), JSON.stringify({ text, result }));
    }
  });
}

test('an address has at most 64 characters before the @ and 254 in total', (t) => {
  const local = 'a'.repeat(64);
  t.true('email' in normalizeEmail(`${local}@example.com`));
  const labels = Array.from({ length: 3 }, () => 'b'.repeat(60)).join('.');
  const domain = (last: number): string => `${labels}.${'c'.repeat(last)}`;
  const longest = `${local}@${domain(254 - 65 - labels.length - 1)}`;
  t.is(longest.length, 254);
  t.deepEqual(normalizeEmail(longest), { email: longest });
  t.true('problemEn' in normalizeEmail(`${longest}c`));
});

test('for the length of a domain in another script, its ASCII form counts', (t) => {
  const domain = Array.from({ length: 8 }, () => '日本語例漢中網国東京都市').join('.');
  t.true(domain.length < 200);
  t.like(normalizeEmail(`a@${domain}.рф`), { problemEn: 'must have at most 254 characters' });
});

test('each error says what to correct', (t) => {
  for (const [text, fault] of [
    ['a b@example.com', /spaces/],
    ['a@example.com,b@example.com', /list/],
    ['Ann <a@example.com>', /alone/],
    ['a@example.com\r\n', /line breaks/],
    ['example.com', /exactly one @/],
    ['почта@example.com', /Latin letters/],
    ['a@example', /domain/],
  ] as const) {
    const result = normalizeEmail(text);
    t.regex('problemEn' in result ? result.problemEn : '', fault);
  }
});

const character = fc.constantFrom(
  ...'@@@..-+_"<>(),;:[]\\/%#? \t\r\n\0aAzZ09éщß日\u00ad\u200b\u202e\u212a\u3002\uff0e\ud800'.split(''),
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 400 }),
  fc.string({ unit: character, maxLength: 30 }),
  fc
    .tuple(fc.string({ unit: character, maxLength: 10 }), fc.string({ unit: 'grapheme', maxLength: 20 }))
    .map(([local, domain]) => `${local}@${domain}.com`),
  fc.emailAddress(),
  fc.emailAddress().map((email) => ` ${email.toUpperCase()} `),
);

test('for any input, the result is a plain ASCII address that stays the same, or an error', (t) => {
  fc.assert(
    fc.property(text, (text) => {
      const result = normalizeEmail(text);
      if ('problemEn' in result) return result.problemEn !== '';
      const { email } = result;
      const again = normalizeEmail(email);
      return (
        /^[!#-'*+\--9=?^-~]+@[a-z0-9.-]+$/.test(email) &&
        email.length <= 254 &&
        email === email.toLowerCase() &&
        'email' in again &&
        again.email === email
      );
    }),
    { numRuns: 5_000 },
  );
  t.pass();
});

test('an ordinary address is accepted in upper or lower case', (t) => {
  const part = fc.stringMatching(/^[a-z0-9]{1,20}$/);
  const label = fc.stringMatching(/^[a-z][a-z0-9]{0,20}$/);
  fc.assert(
    fc.property(part, part, label, label, (name, tag, host, top) => {
      const email = `${name}.${tag}+${tag}@${host}.${top}`;
      const result = normalizeEmail(email.toUpperCase());
      return 'email' in result && result.email === email;
    }),
  );
  t.pass();
});
