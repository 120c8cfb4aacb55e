import Type, { type Static } from 'typebox';
import { defineOperation } from './operation.ts';

export const UserBalance = Type.Partial(
  Type.Object({
    id: Type.String(),
    user_type: Type.String(),
    last_used_at: Type.String({ format: 'date-time' }),
    balance: Type.Number({ description: 'Roubles.' }),
    total_balance_added: Type.Number({ description: 'Roubles.' }),
    free_requests: Type.Integer(),
    request_count_last_hour: Type.Number(),
    total_cost_request_last_hour: Type.Number({ description: 'Roubles.' }),
    average_rpm: Type.Number(),
    requests_per_minute: Type.Number(),
  }),
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
});
