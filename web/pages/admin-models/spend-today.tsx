import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Fact } from '../../ui/fact.tsx';
import { Money } from '../../ui/money.tsx';
import { QueryView } from '../../ui/states.tsx';
import type en from './messages.en.ts';
import { useSpendToday, type Spend } from './read-catalog.ts';

/** What a model was used for today, and what that cost. */
export const SpendToday = ({ id }: { readonly id: string }) => (
  <QueryView query={useSpendToday()} loading={<Sums row={null} />}>
    {(spend) => <Sums row={spend.get(id)} />}
  </QueryView>
);

/** @param row null while it is loading: the sums have their places already */
function Sums({ row }: { readonly row: Spend | undefined | null }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { requests = 0, failures = 0, free_requests: free = 0, cost = 0 } = row ?? {};
  const { vendor_cost: vendorCost = null, margin = null, costed_requests: costed = 0 } = row ?? {};
  const notes = [
    failures > 0 ? t('failedCount', { count: failures }) : null,
    free > 0 ? t('freeCount', { count: free }) : null,
  ].filter((note) => note !== null);
  const missing = row === null ? '…' : requests === 0 ? '–' : t('unknown');
  const amount = (value: number | null) => (value === null ? missing : <Money value={value} />);
  return (
    <dl class="facts admin-models-sums">
      <Fact name={t('requests')}>
        <span class="number">{row === null ? '…' : format.number(requests)}</span>
        {notes.length > 0 && <span class="admin-models-beside">{notes.join(', ')}</span>}
      </Fact>
      <Fact name={t('cost')}>{amount(row === null ? null : cost)}</Fact>
      <Fact name={t('vendorCost')}>
        {amount(vendorCost)}
        {vendorCost !== null && costed < requests && (
          <span class="admin-models-beside">{t('costedOf', { part: costed, all: requests })}</span>
        )}
      </Fact>
      <Fact name={t('margin')}>{amount(margin)}</Fact>
    </dl>
  );
}
