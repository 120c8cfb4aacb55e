import type { TranslationOf } from '../../lib/messages.ts';
import type en from './messages.en.ts';

const messages: TranslationOf<typeof en> = {
  title: 'Песочница',
  text: 'Попробовать модель можно на её странице, в разделе «Попробовать».',
  toModels: 'К моделям',
};

export default messages;
