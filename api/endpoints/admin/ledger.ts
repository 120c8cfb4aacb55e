import { ReservationStore } from '../../../shared/money/reservation-store.ts';
import { operations } from '../../contract/operations.ts';
import { readFromDatabase } from '../../http/request/read-turns.ts';
import { findAccountId } from './accounts.ts';
import { defineAdminEndpoint } from './define-admin-endpoint.ts';
import { verifyAccount } from './verify-account.ts';

export const verifyAccountLedger = defineAdminEndpoint(operations.verifyAccountLedger, (services) => {
  const reservations = new ReservationStore(services.redis);
  return async (context) => {
    const id = await findAccountId(services, context);
    const { entries, checked } = await readFromDatabase(services, context, 'list', () =>
      verifyAccount({ ...services, reservations }, id),
    );
    return {
      entries,
      checked: checked && {
        ...checked.money,
        difference_count: checked.differenceCount,
        differences: checked.differences.map(({ check, request_id, expected, found }) => ({
          check,
          request_id,
          expected,
          found,
        })),
      },
    };
  };
});
