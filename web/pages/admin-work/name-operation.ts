import type { Translate } from '../../lib/messages.ts';
import type en from './messages.en.ts';

const operations = [
  'chat.completions',
  'images.generations',
  'images.edits',
  'embeddings',
  '/v1/chat/completions',
  '/v1/images/generations',
  '/v1/images/edits',
  '/v1/embeddings',
] as const;

/** Names an operation of a job, or the endpoint of a batch. One that is not known stays as it is. */
export function nameOperation(t: Translate<typeof en>, operation: string): string {
  const known = operations.find((one) => one === operation);
  return known === undefined ? operation : t(known);
}
