import type { Catalog } from '../../lib/messages.ts';

/** Texts of all tables of spending. */
const texts = {
  spend_paid: 'Paid',
  spend_vendorCost: 'Cost of vendors',
  spend_partlyKnown: 'not known of all requests',
  spend_margin: 'Margin',
  spend_share: 'Share',
  spend_requests: 'Requests',
  spend_failures: 'Failed',
  spend_failureCount: { one: '{count} failed', other: '{count} failed' },
  spend_tokens: 'Tokens',
} as const satisfies Catalog;

export default texts;
