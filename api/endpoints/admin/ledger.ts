import { addAccountNames } from '../../../shared/admin/account-names.ts';
import {
  discardEntry,
  dryRunDiscardEntry,
  listDeadEntries as listInStores,
  readEntry,
  sumDeadEntries,
  type DeadEntry,
} from '../../../shared/admin/dead-entries.ts';
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { ReservationStore } from '../../../shared/money/reservation-store.ts';
import { operations } from '../../contract/operations.ts';
import { readerOf, readFromDatabase, readFromRedis } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';
import { findAccountId } from './accounts.ts';
import { defineAdminEndpoint, presentPage, trailOf } from './define-admin-endpoint.ts';
import { verifyAccount } from './verify-account.ts';

export const verifyAccountLedger = defineAdminEndpoint(operations.verifyAccountLedger, (services) => {
  const reservations = new ReservationStore(services.redis);
  return async (context) => {
    const id = await findAccountId(services, context);
    const { entries, checked, whyNot } = await readFromDatabase(services, context, 'list', (timedOut) =>
      verifyAccount({ ...services, reservations }, id, AbortSignal.any([timedOut, context.state.signal])),
    );
    return {
      entries,
      why_not: whyNot,
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

export const listDeadEntries = defineAdminEndpoint(
  operations.listDeadEntries,
  (services) => async (context) => {
    const { limit, after } = context.state.query;
    const place = after === undefined ? null : readEntry(after);
    if (after !== undefined && place === null)
      throw invalidField(['query', 'after'], 'must be the last_id of a page of this list');
    return await readFromRedis(services, readerOf(context), 'list', async () => {
      const [page, sums] = await Promise.all([
        listInStores(services, { limit, after: place }),
        place === null ? sumDeadEntries(services) : null,
      ]);
      const rows = await nameAccounts(services, page.rows);
      return { ...presentPage({ ...page, rows }, (row) => row), sums };
    });
  },
);

export const discardDeadEntry = defineAdminEndpoint(
  operations.discardDeadEntry,
  (services) => async (context) => {
    const { entry } = context.state.path;
    const place = readEntry(entry);
    if (place === null)
      throw new AppError('not_found', {
        message: 'There is no such entry among those that could not be read.',
      });
    if (context.state.query.dry_run)
      return await readFromRedis(services, readerOf(context), 'one', () =>
        dryRunDiscardEntry(services, place),
      );
    const discarded = await discardEntry(services, trailOf(services, context), place);
    return (await nameAccounts(services, [discarded]))[0]!;
  },
);

const nameAccounts = (services: Services, entries: readonly DeadEntry[]) =>
  addAccountNames(services, entries, ({ account }) => account);
