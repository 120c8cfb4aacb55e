import test from 'ava';
import { AppError } from '../../../shared/contract/errors.ts';
import { isInRanges, writeAddress, writeAddressRanges } from '../../../shared/accounts/address-ranges.ts';
import {
  maxAddresses,
  readAccountSettings,
  readOwnerSettings,
  type SettingsInput,
} from '../../../shared/accounts/read-account-settings.ts';

const findModelId = (name: string): string | null => (['a', 'alias-of-a'].includes(name) ? 'a' : null);
const read = (input: SettingsInput) => readAccountSettings(input, findModelId);

test('settings are read with their units, and models by their ids', (t) => {
  t.deepEqual(
    read({
      name: 'Магазин',
      email: ' Shop@Example.com ',
      note: 'pays late',
      budget: { amount: 12.5, period: 'weekly' },
      models: ['alias-of-a', 'a'],
      addresses: ['10.0.0.0/8', '::1'],
      expires_at: '2027-01-01',
      tokens_per_minute: 1,
      low_balance: '0.000000001',
    }),
    {
      name: 'Магазин',
      email: 'shop@example.com',
      note: 'pays late',
      budget: { amountNano: 12_500_000_000n, period: 'weekly' },
      models: ['a'],
      addresses: ['10.0.0.0/8', '::1'],
      expiresAt: new Date('2027-01-01T00:00:00Z'),
      tokensPerMinute: 1,
      lowBalanceNano: 1n,
    },
  );
  t.deepEqual(read({ expires_at: '2027-01-01T12:00:00+03:00' }), {
    expiresAt: new Date('2027-01-01T09:00:00Z'),
  });
});

test('null clears a setting, and a setting that is not given stays', (t) => {
  t.deepEqual(read({}), {});
  t.deepEqual(read({ name: null, budget: null }), { name: null, budget: null });
  t.deepEqual(readOwnerSettings({ budget: null, models: ['a'], low_balance: null }, findModelId), {
    ownerBudget: null,
    ownerModels: ['a'],
    lowBalanceNano: null,
  });
});

const wrong: readonly [input: SettingsInput, field: string][] = [
  [{ name: '' }, 'name'],
  [{ name: 'x'.repeat(201) }, 'name'],
  [{ name: 'a\u0007b' }, 'name'],
  [{ note: 'a\nb' }, 'note'],
  [{ note: 'x'.repeat(2_001) }, 'note'],
  [{ email: 'nobody' }, 'email'],
  [{ budget: { amount: 1, period: 'hourly' } }, 'budget.period'],
  [{ budget: { amount: -1, period: 'daily' } }, 'budget.amount'],
  [{ budget: { amount: 9_000_001, period: 'daily' } }, 'budget.amount'],
  [{ budget: { amount: Number.NaN, period: 'daily' } }, 'budget.amount'],
  [{ models: [] }, 'models'],
  [{ models: ['a', 'b'] }, 'models.1'],
  [{ models: ['a,b'] }, 'models.0'],
  [{ addresses: [] }, 'addresses'],
  [{ addresses: Array.from({ length: maxAddresses + 1 }, () => '::1') }, 'addresses'],
  ...[
    '',
    'localhost',
    '10.0.0.1/8',
    '10.0.0.0/33',
    '10.0.0',
    '010.0.0.1',
    '10.0.0.0/8/8',
    '::1/129',
    'fe80::1%eth0',
    '1.2.3.4/',
  ].map((address) => [{ addresses: ['::1', address] }, 'addresses.1'] as [SettingsInput, string]),
  ...['', '2027-13-01', '2027-02-30', '2027-01-01T00:00:00', 'tomorrow', '1'].map(
    (time) => [{ expires_at: time }, 'expires_at'] as [SettingsInput, string],
  ),
  [{ tokens_per_minute: 0 }, 'tokens_per_minute'],
  [{ tokens_per_minute: 1.5 }, 'tokens_per_minute'],
  [{ low_balance: '-1' }, 'low_balance'],
];

test('a wrong setting is a 422 that names its field', (t) => {
  for (const [input, field] of wrong) {
    const error = t.throws<AppError>(() => read(input), { instanceOf: AppError }, JSON.stringify(input));
    t.is(error?.code, 'validation_failed');
    t.is(error?.param, field, JSON.stringify(input));
  }
  t.regex(t.throws(() => read({ models: ['nobody'] })).message, /"nobody" is not a model/);
});

test('ranges are sorted and merged, and find their addresses', (t) => {
  const ranges = writeAddressRanges([
    '10.1.0.0/16',
    '10.0.0.0/8',
    '9.255.255.255',
    '192.0.2.1',
    '::ffff:192.0.2.1',
  ]);
  t.is(ranges.split(' ').length, 2);
  const has = (address: string): boolean => isInRanges(ranges, writeAddress(address));
  t.deepEqual(
    ['9.255.255.254', '9.255.255.255', '10.255.255.255', '11.0.0.0', '192.0.2.1', '::ffff:c000:201', ''].map(
      has,
    ),
    [false, true, true, false, true, true, false],
  );
  t.is(writeAddressRanges(['::/0']), `${'0'.repeat(32)}-${'f'.repeat(32)}`);
});
