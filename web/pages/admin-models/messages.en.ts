import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Models and routes',
} as const satisfies Catalog;

export default messages;
