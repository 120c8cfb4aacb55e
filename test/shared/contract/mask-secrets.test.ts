import { randomUUID } from 'node:crypto';
import test from 'ava';
import { createApiKey, createRefillCode, hashSecret } from '../../../shared/accounts/credentials.ts';
import { createTokenSecret } from '../../../shared/admin/admin-scope.ts';
import {
  hasPartOfSecret,
  hasSecret,
  listSecrets,
  maskSecrets,
  maybeBeginsSecret,
} from '../../../shared/contract/mask-secrets.ts';

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

const firstOf = (text: string, isTrue: (text: string) => boolean): number =>
  Array.from(text, (_, i) => i + 1).find((length) => isTrue(text.slice(0, length))) ?? Infinity;

test('a key or a code that is being typed is recognised after a few characters', (t) => {
  for (let i = 0; i < 100; i++) {
    for (const [secret, prefix] of [
      [createApiKey(), 3],
      [createTokenSecret(), 4],
    ] as const) {
      t.is(firstOf(secret, maybeBeginsSecret), prefix);
      t.is(firstOf(secret, hasPartOfSecret), prefix + 6);
      t.is(firstOf(`key ${secret}`, maybeBeginsSecret), 4 + prefix);
    }
    const code = createRefillCode();
    t.is(firstOf(code.toLowerCase(), maybeBeginsSecret), 10);
    t.is(firstOf(code, hasPartOfSecret), 19);
  }
  t.is(firstOf('7KQM ABCD EFGH JKMN PQRS', maybeBeginsSecret), 10);
  t.is(firstOf('7KQM ABCD EFGH JKMN PQRS', hasPartOfSecret), 19);
});

test('names, ids and words begin no secret', (t) => {
  for (let i = 0; i < 1_000; i++) {
    const id = randomUUID();
    t.is(firstOf(id, maybeBeginsSecret), Infinity, id);
  }
  for (const text of [
    'test-mg-1',
    '2024-2025 plan',
    '2345 6789',
    'anna-petr',
    'test name here next day',
    'batch_0a1b2c3d',
    'mgimo',
    'anna@example.com',
    'five long test name here',
  ])
    t.is(firstOf(text, maybeBeginsSecret), Infinity, text);
  t.false(hasPartOfSecret('mg-chat'));
});
