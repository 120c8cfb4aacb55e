import test from 'ava';
import { sumAddresses, type AddressedRow } from '../../../shared/ledger/sum-addresses.ts';

const at = (hour: number): Date => new Date(Date.UTC(2026, 10, 29, hour));
const row: AddressedRow = { userIp: '192.0.2.1', at: at(10), costNano: 2n, success: true };

test('requests are summed by address with their first and last, those with the most first; lines count one by one', (t) => {
  const rows = [
    row,
    { ...row, userIp: '192.0.2.2', at: at(12), lines: 3 },
    { ...row, userIp: '192.0.2.2', at: at(9), success: false },
  ];
  t.deepEqual(sumAddresses(rows), [
    { address: '192.0.2.2', requests: 4, failed: 1, firstAt: at(9), lastAt: at(12), costNano: 4n },
    { address: '192.0.2.1', requests: 1, failed: 0, firstAt: at(10), lastAt: at(10), costNano: 2n },
  ]);
});
