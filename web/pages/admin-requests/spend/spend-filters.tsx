import { useMessages } from '../../../lib/language.tsx';
import { dayBefore } from '../../../lib/daily-stats.ts';
import { DateRange } from '../../../ui/date-range.tsx';
import { Select } from '../../../ui/field.tsx';
import { AccountFilter } from '../account-filter.tsx';
import { ModelFilter, UpstreamFilter } from '../filters.tsx';
import type en from '../messages.en.ts';
import { groupings, periods, useSpendFilter } from './spend-filter.ts';

/** What is summed. It is in the address, so that it can be kept and sent. */
export function SpendFilters() {
  const t = useMessages<typeof en>();
  const { filter, setFilter, groupBy, setAccount, setUpstream, setPeriod } = useSpendFilter();
  const { by, account, upstream, model, period, since, until } = filter;
  return (
    <section class="card filters" aria-label={t('filters')}>
      <Select
        label={t('groupBy')}
        value={by}
        choices={groupings.map((value) => ({ value, label: t(`by_${value}`) }))}
        onChoose={groupBy}
      />
      <Select
        label={t('period')}
        value={period}
        choices={periods.map((value) => ({ value, label: t(`days_${value}`) }))}
        onChoose={setPeriod}
      />
      <AccountFilter value={account} onChoose={setAccount} />
      <ModelFilter value={model} onChoose={(id) => setFilter({ model: id })} />
      <UpstreamFilter value={upstream} onChoose={setUpstream} />
      {period === 'own' && (
        <div class="filters-period">
          <DateRange
            precision="day"
            value={{ since, until }}
            max={dayBefore(0)}
            onChange={(range) => setFilter({ from: range.since || null, to: range.until || null })}
          />
        </div>
      )}
    </section>
  );
}
