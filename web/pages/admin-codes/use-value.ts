import { formatRub } from '../../../shared/encoding/money.ts';
import { useFormat, type Format } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';

const nanoOfRouble = 1_000_000_000n;

/** `2 500 ₽`: kopecks only where there are any. */
const writeRoubles = (format: Format, nano: bigint): string =>
  nano % nanoOfRouble === 0n ? format.price(Number(nano / nanoOfRouble)) : format.exactMoney(formatRub(nano));

/** Says what codes are worth: roubles, free requests, or both. */
export function useValue(): (nano: bigint, freeRequests: number) => string {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (nano, freeRequests) => {
    const parts = [
      ...(nano > 0n || freeRequests === 0 ? [writeRoubles(format, nano)] : []),
      ...(freeRequests > 0 ? [t('requests', { count: freeRequests })] : []),
    ];
    return parts.length === 2 ? t('both', { roubles: parts[0]!, requests: parts[1]! }) : parts[0]!;
  };
}
