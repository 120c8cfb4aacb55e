import type { TranslationOf } from '../../lib/messages.ts';
import type en from './messages.en.ts';

const messages: TranslationOf<typeof en> = {
  title: 'Страница не найдена',
  text: 'По этому адресу ничего нет. Возможно, ссылка устарела или набрана с ошибкой.',
  home: 'На главную',
};

export default messages;
