import Type, { type Static } from 'typebox';
import { defineOperation } from './operation.ts';

export const UserBalance = Type.Partial(
  Type.Object({
    id: Type.String({ description: 'The account’s id: what support asks for. It opens nothing.' }),
    user_type: Type.String({ description: 'The kind of account, as the operator names it.' }),
    last_used_at: Type.String({
      format: 'date-time',
      description: 'When the account last asked a model for something, in UTC; left out where it never did.',
    }),
    balance: Type.Number({ description: 'Roubles, with what is reserved for requests under way.' }),
    total_balance_added: Type.Number({ description: 'The sum of all refills, in roubles.' }),
    free_requests: Type.Integer({ description: 'How many free requests are left.' }),
    request_count_last_hour: Type.Number({ description: 'Requests of the last hour.' }),
    total_cost_request_last_hour: Type.Number({ description: 'What they cost, in roubles.' }),
    average_rpm: Type.Number({ description: 'Requests per minute, averaged over the last hour.' }),
    requests_per_minute: Type.Number({
      description:
        'The limit of requests per minute; a model’s `rpm_coefficient` says how many one counts for.',
    }),
  }),
  { title: 'UserBalance' },
);
export type UserBalance = Static<typeof UserBalance>;

export const getProfile = defineOperation({
  operationId: 'getProfile',
  tag: 'Users',
  summary: 'Show the balance and limits of the key',
  method: 'get',
  path: '/users/profile',
  auth: 'key',
  response: UserBalance,
  errors: [],
  example: {
    response: {
      id: '6920a3d4f1b2c87e5d0934ab',
      user_type: 'default',
      last_used_at: '2025-11-21T12:07:22.000Z',
      balance: 87.4312,
      total_balance_added: 100,
      free_requests: 7,
      requests_per_minute: 60,
    },
  },
});
