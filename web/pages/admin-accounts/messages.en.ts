import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Accounts',
} as const satisfies Catalog;

export default messages;
