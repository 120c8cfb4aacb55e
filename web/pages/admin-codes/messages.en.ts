import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Codes',
} as const satisfies Catalog;

export default messages;
