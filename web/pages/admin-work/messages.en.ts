import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Queues and work',
} as const satisfies Catalog;

export default messages;
