import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Status',
} as const satisfies Catalog;

export default messages;
