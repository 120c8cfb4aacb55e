import type { TranslationOf } from '../../lib/messages.ts';
import type en from './messages.en.ts';

const messages: TranslationOf<typeof en> = {
  search: 'Поиск по документации',
  searchShort: 'Поиск',
  found: {
    one: '{count} результат',
    few: '{count} результата',
    many: '{count} результатов',
    other: '{count} результата',
  },
  tryIt: 'Попробовать: {title}',
  paid: 'Запрос будет отправлен по-настоящему и оплачен со счёта «{account}», как с его ключом.',
  real: 'Запрос будет отправлен по-настоящему от имени «{account}».',
  realPublic: 'Запрос будет отправлен по-настоящему. Аккаунт для него не нужен.',
  noAccount: 'У вас пока нет API-аккаунта.',
  createAccount: 'Создать',
  signInFirst: 'Войдите, чтобы попробовать этот запрос.',
  body: 'Тело (JSON)',
  exampleOf: 'Пример',
  example_0: 'Ответ целиком',
  example_1: 'Ответ потоком',
  missing: 'Заполните это поле.',
  notJson: 'Не JSON: {reason}',
  send: 'Отправить',
  stop: 'Остановить',
  response: 'Ответ',
  status: 'Статус {status}',
  firstByte: 'первый байт через {time}',
  total: 'всего {time}',
  responseHeaders: 'Заголовки ответа',
  truncated: 'Показаны только первые 200 КБ.',
  stopped: 'Остановлено.',
  broken: 'Соединение оборвалось.',
};

export default messages;
