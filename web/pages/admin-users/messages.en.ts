import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Users',
} as const satisfies Catalog;

export default messages;
