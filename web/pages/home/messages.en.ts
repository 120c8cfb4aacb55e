import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Home',
} as const satisfies Catalog;

export default messages;
