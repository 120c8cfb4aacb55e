import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Playground',
  text: 'Try a model on its page, under “Try it”.',
  toModels: 'To the models',
} as const satisfies Catalog;

export default messages;
