import { switchAccount, useAccounts } from '../../lib/accounts.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { fromZoned, toZoned } from '../../lib/zoned-time.ts';
import { Button } from '../../ui/button.tsx';
import { DateRange } from '../../ui/date-range.tsx';
import { Field, Select } from '../../ui/field.tsx';
import type en from './messages.en.ts';
import { ModelFilter } from './model-filter.tsx';
import { hoursBefore, outcomes, periods, useRequestFilter, type Period } from './request-filter.ts';

/** What is looked for. It is in the address, so that it can be kept and sent. */
export function Filters() {
  const t = useMessages<typeof en>();
  const { filter, isFiltered, setFilter, clear } = useRequestFilter();
  const { model, outcome, period } = filter;
  return (
    <section class="card requests-filters" aria-label={t('filters')}>
      <AccountFilter />
      <ModelFilter value={model} onChoose={(value) => setFilter({ model: value, request_id: null })} />
      <Select
        label={t('outcome')}
        value={outcome}
        choices={[
          { value: '', label: t('allOutcomes') },
          ...outcomes.map((value) => ({ value, label: t(`outcome_${value}`) })),
        ]}
        onChoose={(value) => setFilter({ outcome: value === '' ? null : value, request_id: null })}
      />
      <PeriodFilter />
      <IdFilter />
      {period === 'own' && <OwnPeriod />}
      {isFiltered && (
        <p class="requests-clear">
          <Button kind="quiet" size="small" icon="close" onClick={clear}>
            {t('clear')}
          </Button>
        </p>
      )}
    </section>
  );
}

/** The same as the menu of accounts in the header. */
export function AccountFilter() {
  const t = useMessages<typeof en>();
  const { accounts, selected } = useAccounts();
  if (accounts === null || accounts.length < 2 || selected === null) return null;
  return (
    <Select
      label={t('account')}
      value={String(selected.id)}
      choices={accounts.map(({ id, label }) => ({ value: String(id), label }))}
      onChoose={(id) => switchAccount(Number(id))}
    />
  );
}

function PeriodFilter() {
  const t = useMessages<typeof en>();
  const { filter, setFilter } = useRequestFilter();
  const choose = (period: Period): void =>
    setFilter({
      period: period === 'all' || period === 'own' ? null : period,
      // Begins with a day, to be changed.
      since: period === 'own' ? `${hoursBefore(Date.now(), 24).slice(0, 16)}:00Z` : null,
      until: null,
      request_id: null,
    });
  return (
    <Select
      label={t('period')}
      value={filter.period}
      choices={periods.map((value) => ({ value, label: t(`period_${value}`) }))}
      onChoose={choose}
    />
  );
}

/** To the minute, in the user's time zone. */
function OwnPeriod() {
  const { filter, setFilter } = useRequestFilter();
  const { timeZone } = useFormat();
  return (
    <div class="requests-period own">
      <DateRange
        value={{ since: toZoned(filter.since, timeZone), until: toZoned(filter.until, timeZone) }}
        onChange={({ since, until }) =>
          setFilter({
            period: 'own',
            since: fromZoned(since, timeZone),
            until: fromZoned(until, timeZone),
            request_id: null,
          })
        }
      />
    </div>
  );
}

function IdFilter() {
  const t = useMessages<typeof en>();
  const { filter, findById } = useRequestFilter();
  return (
    <div class="requests-find">
      <Field
        label={t('requestId')}
        type="search"
        value={filter.requestId}
        spellcheck={false}
        autocomplete="off"
        onChange={(event) => findById(event.currentTarget.value.trim())}
      />
    </div>
  );
}
