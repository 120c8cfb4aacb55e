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

/** A time in the user's time zone, with the exact one on hover. */
export function Time({ value, style = 'full' }: { readonly value: string; readonly style?: 'full' | 'ago' }) {
  const format = useFormat();
  return (
    <time dateTime={value} title={format.exactTime(value)}>
      {style === 'ago' ? format.ago(value) : format.dateTime(value)}
    </time>
  );
}
