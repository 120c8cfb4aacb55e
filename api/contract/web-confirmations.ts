import Type, { type Static } from 'typebox';
import { defineOperation } from '../../shared/contract/operation.ts';
import {
  accountExample,
  accountPath,
  confirmationExample,
  confirmationRequestExample,
  keyExample,
} from './web-accounts-examples.ts';
import { ofAccount } from './web-accounts.ts';
import { Email, EmailCodeRequested } from './web-auth.ts';

export const SensitiveActionCodeRequest = Type.Object(
  { email: Email },
  { title: 'SensitiveActionCodeRequest' },
);
export type SensitiveActionCodeRequest = Static<typeof SensitiveActionCodeRequest>;

export const SensitiveActionConfirm = Type.Object(
  {
    challenge_id: Type.String({
      format: 'uuid',
      description: 'The `challenge_id` from the request for the code.',
    }),
    code: Type.String({ minLength: 1, maxLength: 32, description: 'The six-digit code from the email.' }),
  },
  { title: 'SensitiveActionConfirm' },
);
export type SensitiveActionConfirm = Static<typeof SensitiveActionConfirm>;

const codeRequest = {
  ...ofAccount,
  description:
    'The `email` must be the user’s own. The code works once, only for this action on this account, and expires after 10 ' +
    'minutes.',
  method: 'post',
  body: SensitiveActionCodeRequest,
  response: EmailCodeRequested,
  status: 201,
  example: { path: accountPath, ...confirmationRequestExample },
} as const;

export const requestUnlinkCode = defineOperation({
  ...codeRequest,
  operationId: 'requestUnlinkCode',
  summary: 'Request a code to unlink an account',
  path: '/web/api-accounts/{account_id}/unlink/request-code',
  errors: ['not_found'],
});

export const unlinkApiAccount = defineOperation({
  ...ofAccount,
  operationId: 'unlinkApiAccount',
  summary: 'Unlink an account',
  description: 'The account and its key continue to work. Another user can link the account by its key.',
  method: 'delete',
  path: '/web/api-accounts/{account_id}',
  body: SensitiveActionConfirm,
  response: Type.Null(),
  status: 204,
  errors: ['not_found', 'invalid_code'],
  example: { path: accountPath, body: confirmationExample },
});

export const requestRevealCode = defineOperation({
  ...codeRequest,
  operationId: 'requestRevealCode',
  summary: 'Request a code to reveal the key of an account',
  path: '/web/api-accounts/{account_id}/reveal/request-code',
  errors: ['not_found'],
});

export const RevealedApiKey = Type.Object(
  { api_key: Type.String({ description: 'The key of the account.' }) },
  { title: 'RevealedApiKey' },
);
export type RevealedApiKey = Static<typeof RevealedApiKey>;

export const revealApiKey = defineOperation({
  ...ofAccount,
  operationId: 'revealApiKey',
  summary: 'Reveal the key of an account',
  description:
    'Also returns 404 if the operator stores keys only as hashes. In that case, replace the key instead.',
  method: 'post',
  path: '/web/api-accounts/{account_id}/reveal',
  body: SensitiveActionConfirm,
  response: RevealedApiKey,
  errors: ['not_found', 'invalid_code'],
  example: { path: accountPath, body: confirmationExample, response: { api_key: keyExample } },
});

export const requestRegenerateCode = defineOperation({
  ...codeRequest,
  operationId: 'requestRegenerateCode',
  summary: 'Request a code to replace the key of an account',
  path: '/web/api-accounts/{account_id}/regenerate-api-key/request-code',
  errors: ['not_found', 'account_banned'],
});

export const RegeneratedApiKey = Type.Object(
  {
    api_key: Type.String({ description: 'The new key.' }),
    key_masked: Type.String({ description: 'A masked form of the key to recognize it by.' }),
  },
  { title: 'RegeneratedApiKey' },
);
export type RegeneratedApiKey = Static<typeof RegeneratedApiKey>;

export const regenerateKeyOfApiAccount = defineOperation({
  ...ofAccount,
  operationId: 'regenerateKeyOfApiAccount',
  summary: 'Replace the key of an account',
  description: 'The previous key stops working within a second; requests in progress finish.',
  method: 'put',
  path: '/web/api-accounts/{account_id}/regenerate-api-key',
  body: SensitiveActionConfirm,
  response: RegeneratedApiKey,
  errors: ['not_found', 'account_banned', 'invalid_code', 'key_generation_failed'],
  example: {
    path: accountPath,
    body: confirmationExample,
    response: { api_key: keyExample, key_masked: accountExample.key_masked },
  },
});
