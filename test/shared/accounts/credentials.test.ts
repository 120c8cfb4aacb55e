import test from 'ava';
import {
  canBeRefillCode,
  createApiKey,
  createRefillCode,
  decryptSecret,
  encryptSecret,
  hashRefillCode,
  isApiKey,
  maskApiKey,
} from '../../../shared/accounts/credentials.ts';

test('each key is different, has the documented form, and can be masked', (t) => {
  const keys = new Set(Array.from({ length: 1_000 }, createApiKey));
  t.is(keys.size, 1_000);
  for (const key of keys) t.true(isApiKey(key));
  t.false(isApiKey('mg-short'));
  t.regex(maskApiKey(createApiKey()), /^mg-.{4}….{4}$/);
});

test('a secret can be decrypted only with its master key, and only if it is unchanged', (t) => {
  const encrypted = encryptSecret('mg-secret', 'master one');
  t.is(decryptSecret(encrypted, 'master one'), 'mg-secret');
  t.not(encryptSecret('mg-secret', 'master one'), encrypted);
  t.throws(() => decryptSecret(encrypted, 'master two'));
  const corrupted = encrypted.startsWith('A') ? `B${encrypted.slice(1)}` : `A${encrypted.slice(1)}`;
  t.throws(() => decryptSecret(corrupted, 'master one'));
});

test('a code is found in upper or lower case, with dashes or spaces', (t) => {
  const code = createRefillCode();
  t.regex(code, /^[2-9A-HJKMNP-Z]{4}(-[2-9A-HJKMNP-Z]{4}){4}$/);
  t.is(hashRefillCode(` ${code.toLowerCase().replaceAll('-', ' ')} `), hashRefillCode(code));
});

test('a code is found however it was copied or typed', (t) => {
  const code = 'ABEK-MHPC-TYX2-2345-6789';
  for (const typed of [
    'АВЕК-МНРС-ТУХ2-2345-6789',
    'авек мнрс тух2 2345 6789',
    'ABEK–MHPC—TYX2‑2345−6789',
    '\u200bABEK\u00adMHPC\u2060TYX2\ufeff23456789\u00a0',
    'ＡＢＥＫ－ＭＨＰＣ－ＴＹＸ２－２３４５－６７８９',
  ]) {
    t.is(hashRefillCode(typed), hashRefillCode(code), typed);
    t.true(canBeRefillCode(typed), typed);
  }
  for (const typed of [
    '',
    'ABEK',
    `${code}2`,
    code.replace('2', '0'),
    code.replace('2', 'O'),
    code.replace('2', 'Ж'),
  ])
    t.false(canBeRefillCode(typed), typed);
});
