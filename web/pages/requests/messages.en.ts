import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Requests',
} as const satisfies Catalog;

export default messages;
