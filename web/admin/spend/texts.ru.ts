import type { TranslationOf } from '../../lib/messages.ts';
import type en from './texts.en.ts';

const texts: TranslationOf<typeof en> = {
  spend_paid: 'Оплачено',
  spend_vendorCost: 'Стоимость у поставщиков',
  spend_partlyKnown: 'известна не для всех запросов',
  spend_margin: 'Маржа',
  spend_share: 'Доля маржи',
  spend_requests: 'Запросы',
  spend_failures: 'С ошибкой',
  spend_failureCount: {
    one: '{count} с ошибкой',
    few: '{count} с ошибкой',
    many: '{count} с ошибкой',
    other: '{count} с ошибкой',
  },
  spend_tokens: 'Токены',
};

export default texts;
