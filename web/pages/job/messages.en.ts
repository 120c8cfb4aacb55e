import type { Catalog } from '../../lib/messages.ts';
import texts from '../jobs/shared/texts.en.ts';

const messages = {
  ...texts,
  title: 'Job',
  mayLeave: 'You can leave this page. The job goes on, and its result is kept for 24 hours after it ends.',
  whyFailed: 'Why it failed',
  whyCancelled: 'It was cancelled',
  sendAgain: 'The same request may succeed if you send it again.',
  changeFirst: 'The same request would fail again: change it first.',
  atTheEnd: 'known at the end',
  costDetails: 'how it adds up',
  waited: 'Waited',
  ran: 'Ran',
  details: 'Details',
  id: 'Id',
  copyId: 'Copy the id',
  kind: 'Kind',
  deadline: 'Must start by',
  cancelAt: 'Is cancelled at',
  kept: 'Kept until',
  attempts: 'Attempts',
  webhook: 'Webhook',
  'webhook-pending': 'Not delivered yet',
  'webhook-delivered': 'Delivered',
  'webhook-failed': 'Could not be delivered',
  download: 'Download JSON',
  deleteResponse: 'Delete the result',
  deleteTitle: 'Delete the result?',
  deleteText:
    'The response and its images are deleted now instead of after 24 hours. The job and its cost stay, and nothing is refunded.',
  deleted: 'The result is deleted.',
  cancel: 'Cancel the job',
  cancelTitle: 'Cancel this job?',
  cancelQueued: 'It has not started: it ends at once and costs nothing.',
  cancelChat: 'It is running: you pay for the prompt and for what was generated until it stops.',
  cancelSent:
    'It is running: everything that was already requested from the model is charged, and there is no result.',
  result: 'Result',
  resultDeleted: 'The result was deleted.',
  resultUnavailable: 'The result is stored, but cannot be read at the moment.',
  readAgain: 'Read again',
  vectors: { one: '{count} vector', other: '{count} vectors' },
  dimensions: { one: '{count} dimension', other: '{count} dimensions' },
} as const satisfies Catalog;

export default messages;
