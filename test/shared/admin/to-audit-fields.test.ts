import test from 'ava';
import { toAuditFields } from '../../../shared/admin/to-audit-fields.ts';

test('fields are named as in the API, amounts are roubles, and all of it is JSON', (t) => {
  const fields = {
    requestsPerMinute: 60,
    note: null,
    lowBalanceNano: 1_500_000_000n,
    budget: { amountNano: 500_000_000_000n, period: 'daily' },
    addresses: ['10.0.0.0/8'],
    expiresAt: new Date(0),
  };
  const expected = {
    requests_per_minute: 60,
    note: null,
    low_balance: 1.5,
    budget: { amount: 500, period: 'daily' },
    addresses: ['10.0.0.0/8'],
    expires_at: '1970-01-01T00:00:00.000Z',
  };
  t.deepEqual(toAuditFields(fields), expected);
  t.deepEqual(JSON.parse(JSON.stringify(toAuditFields(fields))), expected);
});
