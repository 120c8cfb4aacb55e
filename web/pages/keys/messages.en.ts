import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'API keys',
} as const satisfies Catalog;

export default messages;
