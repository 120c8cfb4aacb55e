import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Playground',
} as const satisfies Catalog;

export default messages;
