import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Batch',
} as const satisfies Catalog;

export default messages;
