/**
 * Returns roubles as the API takes them, from what people type: `1 000,50`, also with a currency. Null if it is no
 * amount.
 */
export function readAmount(text: string): string | null {
  const amount = text.replaceAll(/[\s₽]/g, '').replace(',', '.');
  return /^\d{1,9}(?:\.\d{1,9})?$/.test(amount) ? amount : null;
}

/** The same with a minus, or a plus, before it. */
export function readSignedAmount(text: string): string | null {
  const typed = text.trim();
  const isNegative = /^[-−–]/.test(typed);
  const amount = readAmount(typed.replace(/^[-−–+]/, ''));
  return amount === null || !isNegative ? amount : `-${amount}`;
}
