import { randomUUID } from 'node:crypto';
import test from 'ava';
import { createApiKey, createRefillCode, hashSecret } from '../../../shared/accounts/credentials.ts';
import { createTokenSecret } from '../../../shared/admin/admin-scope.ts';
import { hasSecret, listSecrets, maskSecrets } from '../../../shared/contract/mask-secrets.ts';

test('keys, tokens and codes are hidden in a path, whole or cut', (t) => {
  for (let i = 0; i < 100; i++) {
    const [key, token, code] = [createApiKey(), createTokenSecret(), createRefillCode()];
    t.is(maskSecrets(`/v1/admin/accounts/${key}/ban`), '/v1/admin/accounts/mg-…/ban');
    t.is(maskSecrets(`/v1/admin/accounts/${key.slice(0, 20)}`), '/v1/admin/accounts/mg-…');
    t.is(maskSecrets(`/v1/admin/tokens/${token}`), '/v1/admin/tokens/mga-…');
    t.is(maskSecrets(`/v1/admin/codes/${code.toLowerCase()}/revoke`), '/v1/admin/codes/…/revoke');
  }
});

test('ids are not hidden', (t) => {
  for (let i = 0; i < 100; i++)
    for (const id of [randomUUID(), hashSecret(String(i)), 'gpt-image-1', 'batch_0a1b2c3d', 'mg-chat'])
      t.is(maskSecrets(`/v1/admin/models/${id}/test`), `/v1/admin/models/${id}/test`);
});

test('keys, tokens and codes are recognised anywhere in a text, however they were typed', (t) => {
  for (let i = 0; i < 100; i++) {
    const [key, token, code] = [createApiKey(), createTokenSecret(), createRefillCode()];
    for (const secret of [key, key.slice(0, 20), token, code])
      for (const text of [secret, `"${secret}"`, `my key: ${secret}, please`, `Bearer\n${secret}`])
        t.deepEqual(listSecrets(text)[0], secret, text);
    for (const typed of [code.toLowerCase(), code.replaceAll('-', ''), code.replaceAll('-', ' – ')])
      t.true(hasSecret(`code ${typed}.`), typed);
  }
  t.true(hasSecret('АВЕК-МНРС-ТУХ2-ВЕКМ-НРСТ'));
});

test('words, ids and their beginnings are none', (t) => {
  for (let i = 0; i < 1_000; i++) {
    const id = randomUUID();
    for (const text of [id, id.slice(0, 23), id.slice(0, 20), hashSecret(String(i))])
      t.false(hasSecret(text), text);
  }
  for (const text of [
    'anna@example.com',
    'five long test name here',
    'batch_0a1b2c3d',
    'mg-chat',
    'internationalization',
  ])
    t.false(hasSecret(text), text);
});
