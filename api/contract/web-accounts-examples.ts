import { webUserExample } from './web-auth-examples.ts';

export const accountPath = { account_id: 714_028_651 };

export const keyExample = 'mg-WSN0pR4tYbVq1cZxLk8mD2hJf6gA9sEuT3iOwX7JSRI';

export const accountExample = {
  id: accountPath.account_id,
  user_balance_id: '019aa089-6818-7b40-9d15-3c8e5a6f0b27',
  label: 'Основной',
  is_primary: true,
  balance: '149.99448',
  total_balance_added: '150',
  free_requests: 10,
  user_type: 'default',
  ban: false,
  key_id: 1_204_773_915,
  key_label: null,
  key_masked: 'mg-WSN0…JSRI',
  key_active: true,
  average_rpm: 0.05,
  requests_per_minute: 60,
  total_cost_request_last_hour: '0.00552',
  budget: null,
  models: null,
  low_balance: null,
  limits: { budget: null, models: null, addresses: null, expires_at: null, tokens_per_minute: null },
};

/** The same account right after its creation. */
export const firstAccountExample = {
  ...accountExample,
  balance: '0',
  total_balance_added: '0',
  average_rpm: 0,
  total_cost_request_last_hour: '0',
};

export const grantExample = {
  balance: '0',
  free_requests: 10,
  reason: null,
  message_en: null,
  message_ru: null,
};

const challengeId = '7d0b6a53-9c1e-4a7e-8f1b-0b2f6f9b7c42';

export const confirmationRequestExample = {
  body: { email: webUserExample.email },
  response: { challenge_id: challengeId, expires_at: '2025-11-21T08:10:00.000Z' },
};

export const confirmationExample = { challenge_id: challengeId, code: '042317' };
