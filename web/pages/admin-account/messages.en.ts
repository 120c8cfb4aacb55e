import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Account',
} as const satisfies Catalog;

export default messages;
