import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Audit',
  time: 'Time',
  token: 'Token',
  action: 'Change',
  resource: 'Of',
  outcome: 'Outcome',
} as const satisfies Catalog;

export default messages;
