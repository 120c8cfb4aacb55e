import type { TranslationOf } from '../../lib/messages.ts';
import texts from '../jobs/shared/texts.ru.ts';
import type en from './messages.en.ts';

const messages: TranslationOf<typeof en> = {
  ...texts,
  title: 'Задание',
  mayLeave: 'Страницу можно закрыть. Задание продолжится, а результат хранится 24 часа после завершения.',
  whyFailed: 'Почему не получилось',
  whyCancelled: 'Задание отменено',
  sendAgain: 'Отправьте тот же запрос ещё раз: он может выполниться.',
  changeFirst: 'Тот же запрос снова завершится ошибкой: сначала измените его.',
  atTheEnd: 'станет известна в конце',
  costDetails: 'из чего она сложилась',
  waited: 'Ожидание',
  ran: 'Выполнение',
  details: 'Подробности',
  id: 'Идентификатор',
  copyId: 'Скопировать идентификатор',
  kind: 'Вид',
  deadline: 'Должно начаться до',
  cancelAt: 'Отменится',
  kept: 'Хранится до',
  attempts: 'Попытки',
  webhook: 'Вебхук',
  'webhook-pending': 'Ещё не доставлен',
  'webhook-delivered': 'Доставлен',
  'webhook-failed': 'Доставить не удалось',
  download: 'Скачать JSON',
  deleteResponse: 'Удалить результат',
  deleteTitle: 'Удалить результат?',
  deleteText:
    'Ответ и его изображения удалятся сейчас, а не через 24 часа. Задание и его стоимость останутся, деньги не вернутся.',
  deleted: 'Результат удалён.',
  cancel: 'Отменить задание',
  cancelTitle: 'Отменить это задание?',
  cancelQueued: 'Оно ещё не началось: отменится сразу и ничего не будет стоить.',
  cancelChat: 'Оно выполняется: вы заплатите за запрос и за то, что модель успеет написать до остановки.',
  cancelSent: 'Оно выполняется: всё, что уже запрошено у модели, будет оплачено, а результата не будет.',
  result: 'Результат',
  resultDeleted: 'Результат удалён.',
  resultUnavailable: 'Результат сохранён, но сейчас его не удаётся прочитать.',
  readAgain: 'Прочитать ещё раз',
  vectors: {
    one: '{count} вектор',
    few: '{count} вектора',
    many: '{count} векторов',
    other: '{count} вектора',
  },
  dimensions: {
    one: '{count} измерение',
    few: '{count} измерения',
    many: '{count} измерений',
    other: '{count} измерения',
  },
};

export default messages;
