import { useCommon } from '../lib/language.tsx';

export interface DateRangeValue {
  /** `2026-11-29T14:30`, in the user's time zone; empty for none. */
  readonly since: string;
  readonly until: string;
}

/** Two times, with the browser's own pickers. */
export function DateRange({
  value,
  onChange,
  precision = 'minute',
  min,
  max,
}: {
  readonly value: DateRangeValue;
  readonly onChange: (value: DateRangeValue) => void;
  readonly precision?: 'minute' | 'day';
  /** The earliest and the latest time that the pickers offer, as in `value`. */
  readonly min?: string;
  readonly max?: string;
}) {
  const common = useCommon();
  const type = precision === 'minute' ? 'datetime-local' : 'date';
  const field = (name: keyof DateRangeValue, label: string) => (
    <label class="date-field">
      <span>{label}</span>
      <input
        class="input"
        type={type}
        value={value[name]}
        min={min}
        max={max}
        onChange={(event) => onChange({ ...value, [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <div class="date-range">
      {field('since', common('from'))}
      {field('until', common('to'))}
    </div>
  );
}
