import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Console',
} as const satisfies Catalog;

export default messages;
