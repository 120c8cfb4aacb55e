import accountTexts from '../../admin/accounts/texts.ru.ts';
import type { TranslationOf } from '../../lib/messages.ts';
import type en from './messages.en.ts';

const messages: TranslationOf<typeof en> = {
  ...accountTexts,
  title: 'Аккаунты',
  create: 'Создать аккаунт',
  search: 'Поиск аккаунтов',
  searchPlaceholder: 'Имя, почта, заметка, id или API-ключ',
  searchHint: 'Ищет по началу слов имени, почты и заметки и по началу id, от четырёх символов.',
  noAccounts: 'Аккаунтов ещё нет',
  noAccountsText: 'Создайте первый или дождитесь клиента, который зарегистрируется сам.',
  noneFound: 'Ничего не начинается с «{search}»',
  noneFoundText:
    'С каждого введённого слова должно начинаться слово имени, почты или заметки либо id. Середина слова не ищется.',
  anyState: 'Все',
  onlyBanned: 'Заблокированные',
  notBanned: 'Незаблокированные',
  ban: 'Блокировка',
  clear: 'Показать все аккаунты',
  noneOfFilter: 'Таких аккаунтов нет',
  account: 'Аккаунт',
  id: 'Id',
  state: 'Состояние',
  balance: 'Баланс',
  freeRequests: 'Бесплатных',
  limits: 'Лимиты',
  lastUsed: 'Последний запрос',
  never: 'не было',
  created: 'Создан',
  tpm: '{tokens} токенов/мин',
  createTitle: 'Новый аккаунт',
  moreSettings: 'Лимиты и другие настройки',
  byDefault: 'по умолчанию',
  createdTitle: 'Аккаунт создан',
  createdText: 'Ключ аккаунта {name}:',
  createdAlready:
    'Из этого окна уже создан аккаунт с другими полями: ответ потерялся. Закройте окно и найдите его в списке.',
  rpm: '{count}/мин',
  models: { one: '{count} модель', few: '{count} модели', many: '{count} моделей', other: '{count} модели' },
  addresses: {
    one: '{count} адрес',
    few: '{count} адреса',
    many: '{count} адресов',
    other: '{count} адреса',
  },
};

export default messages;
