import Type from 'typebox';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { AdminAccountPath, accountExample } from './accounts.ts';
import { DryRunQuery, dryRuns } from './dry-run.ts';
import { ReasonQuery } from './fields.ts';

const path = accountExample;
const id = path.account_id;

export const rotateAccountKey = defineOperation({
  operationId: 'rotateAccountKey',
  tag: 'Admin',
  summary: 'Replace the API key of an account',
  description:
    'The old key stops working within a second; requests in progress finish. If two calls replace it at the same time, ' +
    'one of them gets 422, and no key.',
  method: 'post',
  path: '/admin/accounts/{account_id}/rotate-key',
  auth: 'admin',
  pathParameters: AdminAccountPath,
  query: DryRunQuery,
  response: Type.Object(
    { id: Type.String(), api_key: Type.String({ description: 'The new key, which is shown only here.' }) },
    { title: 'RotatedKey' },
  ),
  additionalResponses: [dryRuns.rotateKey],
  errors: ['not_found'],
  example: { path, response: { id, api_key: 'mg-Zk3v9n1Qw8rT5yU2iO7pA4sD6fG0hJlXcVbNmQwErTy' } },
});

const WebhookSecret = Type.Object(
  {
    id: Type.String(),
    secret: Type.String({ description: 'As receivers need it: `whsec_` and base64.' }),
  },
  { title: 'WebhookSecret' },
);
const webhookSecret = { id, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw1yqHkZf9GtM=' };

export const getWebhookSecret = defineOperation({
  operationId: 'getWebhookSecret',
  tag: 'Admin',
  summary: 'Show the webhook secret of an account',
  description:
    'The secret that signs the webhooks of the account, which is created when it is first needed. Needs the scope `all`, and is ' +
    'recorded in the audit log.',
  method: 'get',
  path: '/admin/accounts/{account_id}/webhook-secret',
  auth: 'admin',
  adminScope: 'all',
  pathParameters: AdminAccountPath,
  query: ReasonQuery,
  response: WebhookSecret,
  errors: ['not_found', 'validation_failed'],
  example: { path, response: webhookSecret },
});

export const rotateWebhookSecret = defineOperation({
  operationId: 'rotateWebhookSecret',
  tag: 'Admin',
  summary: 'Replace the webhook secret of an account',
  description:
    'Webhooks are signed with both secrets for 24 hours. Another rotation within that time ends the first secret at once: ' +
    'replace a stolen secret twice.',
  method: 'post',
  path: '/admin/accounts/{account_id}/webhook-secret/rotate',
  auth: 'admin',
  pathParameters: AdminAccountPath,
  query: DryRunQuery,
  response: WebhookSecret,
  additionalResponses: [dryRuns.rotateWebhookSecret],
  errors: ['not_found'],
  example: { path, response: webhookSecret },
});
