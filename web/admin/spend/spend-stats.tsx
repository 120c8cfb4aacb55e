import type { ComponentChildren } from 'preact';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Stat } from '../../ui/card.tsx';
import { Money } from '../../ui/money.tsx';
import { Margin } from '../request-table.tsx';
import { findShare, type SpendSums } from './spend.ts';
import type texts from './texts.en.ts';

/** What rows of spending add up to. @param sums null while they are read: the stats have their places already */
export function SpendStats({ sums }: { readonly sums: SpendSums | null }) {
  const t = useMessages<typeof texts>();
  const format = useFormat();
  const show = (render: (known: SpendSums) => ComponentChildren): ComponentChildren =>
    sums === null ? '…' : render(sums);
  const share = sums === null ? null : findShare(sums);
  const isPartlyKnown = sums !== null && sums.costed_requests < sums.requests;
  return (
    <div class="stats">
      <Stat label={t('spend_paid')} note={sums === null ? '…' : format.exactMoney(sums.cost)}>
        {show(({ cost }) => (
          <Money value={cost} />
        ))}
      </Stat>
      <Stat label={t('spend_vendorCost')} note={isPartlyKnown ? t('spend_partlyKnown') : undefined}>
        {show(({ vendor_cost: cost }) => (cost === null ? '–' : <Money value={cost} />))}
      </Stat>
      <Stat label={t('spend_margin')} note={share === null ? undefined : format.percent(share)}>
        {show(({ margin }) => (
          <Margin value={margin} />
        ))}
      </Stat>
      <Stat label={t('spend_requests')} note={t('spend_failureCount', { count: sums?.failures ?? 0 })}>
        {show(({ requests }) => format.number(requests))}
      </Stat>
    </div>
  );
}
