import type { Catalog } from '../../lib/messages.ts';

const messages = {
  title: 'Page not found',
  text: 'There is nothing at this address. The link may be old or mistyped.',
  home: 'Go to the start page',
} as const satisfies Catalog;

export default messages;
