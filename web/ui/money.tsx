import { useFormat, type Roubles } from '../lib/format.ts';

/** A sum with the digits that matter; all digits on hover. */
export function Money({ value }: { readonly value: Roubles }) {
  const format = useFormat();
  return (
    <span class="money" title={format.exactMoney(value)}>
      {format.money(value)}
    </span>
  );
}

/** A time in the user's time zone, with the exact one on hover. `recent`: of the last days, so without the year. */
export function Time({
  value,
  style = 'full',
}: {
  readonly value: string;
  readonly style?: 'full' | 'recent' | 'ago';
}) {
  const format = useFormat();
  const write = { full: format.dateTime, recent: format.recentTime, ago: format.ago }[style];
  return (
    <time dateTime={value} title={format.exactTime(value)}>
      {write(value)}
    </time>
  );
}
