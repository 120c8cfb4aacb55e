import type { TranslationOf } from '../../lib/messages.ts';
import type en from './messages.en.ts';

const messages: TranslationOf<typeof en> = {
  title: 'Обзор',
  live: 'Обновляется каждые 5 секунд',
  updated: 'Обновлено в {time}',
  stale: 'Не обновляется с {time}: {reason}',

  calm: 'Всё в порядке',
  calmText:
    'Тревог нет, защита ни от одного апстрима не сработала, ни одна модель не сбоит часто, все части этой страницы прочитаны.',
  wrong: {
    one: '{count} проблема',
    few: '{count} проблемы',
    many: '{count} проблем',
    other: '{count} проблемы',
  },
  notes: 'Полезно знать',
  since: 'началось {ago}',
  advice: 'Что делать',
  condition_redis_unreachable: 'Redis не отвечает: запросы не принимаются.',
  condition_redis_memory: 'В Redis кончилась память: клиенты получают ошибки.',
  condition_redis_evicts: 'Redis может удалять ключи: возможна потеря балансов и заданий.',
  condition_no_workers: 'Нет воркеров для очередей: {queues}. Клиенты получают ошибки, задания ждут.',
  condition_worker_faults: 'Воркеры сообщают о сбоях, которые сами не пройдут. Очереди: {queues}.',
  condition_ledger_behind: 'Журнал операций не записывается в MongoDB: история и статистика отстают.',
  condition_mongodb_unreachable: 'MongoDB не отвечает: история и личный кабинет не работают.',
  condition_storage_unreachable:
    'Хранилище файлов не отвечает: не работают картинки, загрузка файлов и пакеты.',
  condition_upstream_key_refused: 'Апстрим {upstream} не принимает ключ.',
  advice_redis_unreachable:
    'Проверьте, что Redis запущен, на его диске есть место, а REDIS_URL ведёт к нему. Шлюз восстановится сам.',
  advice_redis_memory:
    'Увеличьте maxmemory или найдите, что занимает память: ожидающая работа или незаписанный журнал операций.',
  advice_redis_evicts: 'Задайте maxmemory-policy: noeviction.',
  advice_no_workers:
    'Если в Redis кончилась память, причина в этом. Иначе запустите воркер (npm run worker) и завершите зависшие: их /livez не отвечает.',
  advice_worker_faults:
    'Найдите в логах воркеров строку «fails until this is fixed»: в ней сказано, что делать.',
  advice_ledger_behind:
    'Проверьте, что MongoDB принимает записи, а воркеры работают; в их логах сказано, почему запись стоит. Балансы при этом верны.',
  advice_mongodb_unreachable:
    'Проверьте, что MongoDB запущена, в ней есть primary, а MONGODB_URL ведёт к ней.',
  advice_storage_unreachable: 'Проверьте сервер S3_ENDPOINT, бакет S3_BUCKET и ключи доступа.',
  advice_upstream_key_refused:
    'Проверьте, действует ли ключ, есть ли на нём деньги и доступна ли ему модель. Его пробуют снова каждые десять минут, а после сброса апстрима — сразу.',
  nothingElse: 'Больше никто не обслуживает: {models}.',
  unreadParts: 'Прочитано не всё. Не хватает: {parts}.',
  part_traffic: 'трафик',
  part_queues: 'очереди',
  part_upstreams: 'апстримы',
  part_processes: 'процессы',
  part_ledger: 'журнал операций',
  ledgerBehind: 'Журнал операций в MongoDB отстаёт на {lag}.',
  manyFailures: {
    one: 'Сбоев за последний час: {share} из {count} запроса.',
    few: 'Сбоев за последний час: {share} из {count} запросов.',
    many: 'Сбоев за последний час: {share} из {count} запросов.',
    other: 'Сбоев за последний час: {share} из {count} запроса.',
  },
  modelFails: 'Модель {model} часто сбоит: {failures} за последний час.',
  failedOf: '{failed} из {requests}',
  breakerOpen: 'Апстрим {upstream} сбоит: вызовы остановлены для {open} из {routes} моделей.',
  breakerHalfOpen: 'Апстрим {upstream} сбоил, сейчас пробуем снова: {open} из {routes} моделей.',
  keysRefused: 'Апстрим {upstream} не принимает {refused} из {keys} ключей.',
  mixedBuilds: 'Работают процессы разных сборок: {builds}. Это нормально только во время обновления.',
  drained: 'Апстрим {upstream} выведен из работы оператором.',
  drainedModels: 'Апстрим {upstream} выведен из работы для {models}.',
  slotsFull: 'Заняты все слоты апстрима {upstream} ({slots}). Ждут слота: {waiting}.',

  unread: 'Не удалось прочитать: хранилище не отвечает.',
  traffic: 'Трафик и деньги',
  hour: 'За час',
  day: 'За 24 часа',
  requests: 'Запросы',
  rejected: {
    one: '{count} отклонён',
    few: '{count} отклонены',
    many: '{count} отклонено',
    other: '{count} отклонено',
  },
  failures: 'Сбои',
  duration: 'Длительность, медиана',
  firstToken: 'Начало ответа, медиана',
  p95: '95 %: {time}',
  spend: 'Заплатили клиенты',
  vendorCost: 'затраты: {sum}',
  noVendorCost: 'затраты неизвестны',
  margin: 'Маржа',
  last24: 'Запросы по часам',
  chartSummary: 'За 24 часа запросов: {requests}, из них со сбоем: {failed}.',

  queues: 'Очереди',
  queue: 'Очередь',
  queue_chat: 'чат',
  queue_image: 'картинки',
  queue_embedding: 'эмбеддинги',
  waiting: 'Ждут',
  forSlot: { one: 'слота: {count}', few: 'слота: {count}', many: 'слота: {count}', other: 'слота: {count}' },
  oldest: 'Дольше всех',
  eta: 'Разберут за',
  notKnown: 'неизвестно',
  running: 'В работе',
  workers: 'Воркеры',
  workersOf: {
    one: '{count} воркер',
    few: '{count} воркера',
    many: '{count} воркеров',
    other: '{count} воркера',
  },
  noWorkers: 'нет воркеров',

  slots: 'Вызовы апстримов',
  slotsOf: '{used} из {slots}',
  noUpstreams: 'В каталоге нет ни одного апстрима, который можно вызвать.',
  badgeOpen: 'сбоит',
  badgeHalfOpen: 'пробуем снова',
  badgeKeys: {
    one: '{count} ключ не принят',
    few: '{count} ключа не приняты',
    many: '{count} ключей не принято',
    other: '{count} ключа не приняты',
  },
  badgeCooldown: 'ключ на паузе: {time}',
  badgeDrained: 'выведен из работы',
  badgePartlyDrained: 'частично выведен из работы',

  mostFailed: 'Модели с наибольшим числом сбоев',
  model: 'Модель',
  noFailures: 'За 24 часа ни один запрос не завершился сбоем.',

  processes: 'Процессы',
  apis: 'API',
  oldestStarted: 'старший: {ago}',

  ledger: 'Журнал операций',
  lag: 'Отставание',
  unwritten: 'Ждут записи',
  keepsUp: 'успевает',
  behind: 'слишком отстал',
};

export default messages;
