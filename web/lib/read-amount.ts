/** A thousand for some, and one with three decimals for others: `1,000`. */
const ambiguous = /^[1-9]\d{0,2}[.,]\d{3}$/;

/**
 * Returns roubles as the API takes them, from what people type: `1 000,50`, also with a currency. Null if it is no
 * amount, or could be two.
 */
export function readAmount(text: string): string | null {
  const typed = text.replaceAll(/[\s₽]/g, '');
  if (ambiguous.test(typed)) return null;
  const amount = typed.replace(',', '.');
  return /^\d{1,9}(?:\.\d{1,9})?$/.test(amount) ? amount : null;
}

/** The same with a minus, or a plus, before it. */
export function readSignedAmount(text: string): string | null {
  const typed = text.trim();
  const isNegative = /^[-−–]/.test(typed);
  const amount = readAmount(typed.replace(/^[-−–+]/, ''));
  return amount === null || !isNegative ? amount : `-${amount}`;
}
