import type { TranslationOf } from '../../lib/messages.ts';
import type en from './messages.en.ts';

const messages: TranslationOf<typeof en> = {
  title: 'Настройки',

  profile: 'Профиль',
  email: 'Эл. почта',
  emailNote: 'Сюда приходят коды и уведомления.',
  memberSince: 'Регистрация',
  lastSignIn: 'Последний вход',

  appearance: 'Язык и регион',
  language: 'Язык',
  theme: 'Тема',
  timeZone: 'Часовой пояс',
  findTimeZone: 'Город, страна или смещение',
  timeZoneSaved: 'Часовой пояс сохранён',
  now: 'Там сейчас {time}.',
  useBrowserZone: 'Как на устройстве',

  sessions: 'Сеансы и устройства',
  sessionsText: 'Все места, где вы вошли. Если какой-то сеанс вам незнаком, завершите его.',
  thisDevice: 'это устройство',
  unknownBrowser: 'Неизвестный браузер',
  onSystem: '{browser}, {system}',
  lastUsed: 'Активность: {ago}, адрес {address}',
  lastUsedNoAddress: 'Активность: {ago}',
  startedAt: 'Вход: {time}',
  endsAt: 'без активности завершится {time}',
  end: 'Завершить',
  endOne: 'Завершить сеанс: {device}',
  ended: 'Сеанс завершён',
  endOthers: 'Завершить все остальные',
  endOthersTitle: {
    one: 'Завершить ещё {count} сеанс?',
    few: 'Завершить остальные {count} сеанса?',
    many: 'Завершить остальные {count} сеансов?',
    other: 'Завершить остальные {count} сеанса?',
  },
  endOthersText: 'Везде, кроме этого устройства, придётся войти снова по коду. API-ключи продолжат работать.',
  othersEnded: 'Остальные сеансы завершены',
  onlyThis: 'Других сеансов нет.',
};

export default messages;
