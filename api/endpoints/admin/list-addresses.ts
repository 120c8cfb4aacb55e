import { toRubNumber } from '../../../shared/encoding/money.ts';
import { RequestListStore } from '../../../shared/ledger/request-list-store.ts';
import { sumAddresses, type AddressSums } from '../../../shared/ledger/sum-addresses.ts';
import type { Services } from '../../services.ts';

const periodMs = 72 * 3_600_000;
/** More are not read: a busy account may have millions. */
const maxRows = 10_000;
const maxAddresses = 20;

/** Lists from which addresses an account was used lately. */
export async function listAddresses({ ledger }: Pick<Services, 'ledger'>, accountId: string) {
  const since = new Date(Date.now() - periodMs);
  const rows = await new RequestListStore(ledger).readAddresses({ accountId, since }, maxRows + 1);
  const isComplete = rows.length <= maxRows;
  const sums = sumAddresses(rows.slice(0, maxRows));
  return {
    since: (isComplete ? since : rows[maxRows - 1]!.at).toISOString(),
    is_complete: isComplete,
    addresses: sums.length,
    data: sums.slice(0, maxAddresses).map(describe),
  };
}

const describe = ({ address, requests, failed, firstAt, lastAt, costNano }: AddressSums) => ({
  address,
  requests,
  failed,
  first_at: firstAt.toISOString(),
  last_at: lastAt.toISOString(),
  cost: toRubNumber(costNano),
});
