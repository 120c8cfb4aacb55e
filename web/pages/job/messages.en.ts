import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Job',
} as const satisfies Catalog;

export default messages;
