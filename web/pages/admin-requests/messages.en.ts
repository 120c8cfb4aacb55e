import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'All requests',
} as const satisfies Catalog;

export default messages;
