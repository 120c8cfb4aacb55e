import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Jobs',
} as const satisfies Catalog;

export default messages;
