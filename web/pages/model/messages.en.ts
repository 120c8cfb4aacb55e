import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Model',
} as const satisfies Catalog;

export default messages;
