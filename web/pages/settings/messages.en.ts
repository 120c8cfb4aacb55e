import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Settings',
} as const satisfies Catalog;

export default messages;
