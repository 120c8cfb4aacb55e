import type { Catalog } from '../../lib/messages.ts';
import texts from '../jobs/shared/texts.en.ts';

const messages = {
  ...texts,
  title: 'Batch',
  mayLeave: 'You can leave this page: the batch goes on, and its results are kept for 30 days.',
  stoppingTitle: 'The batch is stopping',
  stoppingText:
    'Lines that are running end and are charged. The others are written to the file of errors, and cost nothing.',
  costSoFar: 'Cost so far',
  ofAtMost: 'of at most {amount}',
  estimate: 'Estimate',
  estimateNote: 'at the current prices',
  reserved: 'Reserved',
  reservedNote: 'for lines that are running',
  tokens: 'Tokens',
  tokensNote: '{input} in, {output} out',
  results: 'Download results',
  resultsSoFar: 'Results so far',
  errors: 'Download errors',
  retry: 'Retry failed lines',
  retryTitle: 'Retry the failed lines?',
  retryText: {
    one: '{count} line runs again, in a new batch and at the current prices. What succeeded is not run again.',
    other:
      '{count} lines run again, in a new batch and at the current prices. What succeeded is not run again.',
  },
  retryOnce: 'A batch can be retried once. Lines that fail again are retried from the new batch.',
  cancel: 'Cancel the batch',
  cancelTitle: 'Cancel this batch?',
  cancelRunning: 'Lines that are running end and are charged. The results so far are kept.',
  cancelOthers: {
    one: 'No other line begins. At most {count} line will not be run; it costs nothing and can be retried.',
    other: 'No others begin. At most {count} lines will not be run; they cost nothing and can be retried.',
  },
  failedLines: { one: '{count} failed line', other: '{count} failed lines' },
  firstOnly: {
    one: 'The first one; all are in the file of errors.',
    other: 'The first {count}; all are in the file of errors.',
  },
  firstResults: 'First results',
  customId: 'custom_id',
  reason: 'Reason',
  result: 'Result',
  vector: 'Vector of {size} numbers',
  packedVector: 'Vector in base64',
  uploadAgain: 'Upload another file',
  details: 'Details',
  id: 'Id',
  copyId: 'Copy the id',
  kind: 'Requests',
  expires: 'Must end by',
  insufficient_balance: 'Not run: the balance, or the most that the batch may cost, was used up.',
  batch_cancelled: 'Not run: you cancelled the batch.',
  batch_expired: 'Not run: 24 hours were over.',
  budget_exceeded: 'Not run: the budget of the account was used up.',
  model_not_allowed: 'Not run: this account may not use the model.',
  key_expired: 'Not run: the API key has expired.',
  account_banned: 'Not run: the account was banned.',
  input_lost: 'Not run: the file with the requests was lost.',
} as const satisfies Catalog;

export default messages;
