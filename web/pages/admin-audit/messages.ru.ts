import type { TranslationOf } from '../../lib/messages.ts';
import type en from './messages.en.ts';

const messages: TranslationOf<typeof en> = {
  title: 'Журнал изменений',
  time: 'Время',
  token: 'Токен',
  action: 'Изменение',
  resource: 'Чего',
  outcome: 'Исход',
};

export default messages;
