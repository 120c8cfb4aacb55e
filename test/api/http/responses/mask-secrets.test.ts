import { randomUUID } from 'node:crypto';
import test from 'ava';
import { createApiKey, createRefillCode, hashSecret } from '../../../../shared/accounts/credentials.ts';
import { createTokenSecret } from '../../../../shared/admin/admin-scope.ts';
import { maskSecrets } from '../../../../api/http/responses/mask-secrets.ts';

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
