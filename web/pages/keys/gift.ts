import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';

/** Returns a function that says what was added to an account: an amount, free requests, or both. */
export function useGift(): (balance: string, freeRequests: number) => string {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (balance, freeRequests) => {
    const amount = format.money(balance);
    const requests = t('freeRequestCount', { count: freeRequests });
    if (freeRequests === 0) return amount;
    return Number(balance) === 0 ? requests : t('giftBoth', { amount, requests });
  };
}
