import type { Catalog } from '../lib/messages.ts';

/** Texts of `CostTable`. */
const texts = {
  cost: 'Cost',
  part: 'Part',
  quantity: 'Quantity',
  rate: 'Rate',
  amount: 'Amount',
  times: '{quantity} × {rate}',
  perMillion: '{price} per million',
  part_prompt: 'Input tokens',
  part_cached_prompt: 'Input tokens from a cache',
  part_cache_write: 'Input tokens written to a cache',
  part_completion: 'Output tokens',
  part_image: 'Images',
  part_second: 'Seconds',
  part_characters: 'Characters',
  part_request: 'Requests',
  rounding: 'Rounding',
  paidByFreeRequest: 'Paid for with a free request',
  beyondBalance: 'Beyond your balance, not charged',
  notCharged: 'It failed, and nothing was charged.',
  nothingCharged: 'Nothing was charged.',
  noRates:
    'There is no breakdown: a batch is charged line by line, and prices of long ago may not be known any more.',
  estimatedText: 'The gateway counted the tokens, because the vendor did not report them.',
  total: 'Total',
} as const satisfies Catalog;

export default texts;
