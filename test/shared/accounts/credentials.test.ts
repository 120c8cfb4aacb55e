import test from 'ava';
import {
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
