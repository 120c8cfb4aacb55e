import { changePeriod, type AddressPeriod } from '../lib/address-period.ts';
import type { FilterChanges } from '../lib/address-filters.ts';
import { useFormat } from '../lib/format.ts';
import { fromZoned, toZoned } from '../lib/zoned-time.ts';
import { DateRange } from './date-range.tsx';
import { Select, type Choice } from './field.tsx';

/** A choice of periods, one of which may be `own`. The first one is that of an address without a period. */
export function PeriodSelect<Name extends string>({
  label,
  choices,
  period,
  onChange,
}: {
  readonly label: string;
  readonly choices: readonly Choice<Name | 'own'>[];
  readonly period: AddressPeriod<Name>;
  readonly onChange: (changes: FilterChanges) => void;
}) {
  return (
    <Select
      label={label}
      value={period.name}
      choices={choices}
      onChoose={(name) => onChange(changePeriod(name, choices[0]!.value))}
    />
  );
}

/** The bounds of an own period, to the minute, in the user's time zone. */
export function OwnPeriod({
  period: { since, until },
  onChange,
}: {
  readonly period: AddressPeriod<string>;
  readonly onChange: (changes: FilterChanges) => void;
}) {
  const { timeZone } = useFormat();
  return (
    <div class="filters-period own">
      <DateRange
        value={{ since: toZoned(since, timeZone), until: toZoned(until, timeZone) }}
        onChange={(range) =>
          onChange({
            period: 'own',
            since: fromZoned(range.since, timeZone),
            until: fromZoned(range.until, timeZone),
          })
        }
      />
    </div>
  );
}
