/** OpenAI's values of `error.type`. */
type ErrorType =
  | 'authentication_error'
  | 'insufficient_quota'
  | 'permission_error'
  | 'invalid_request_error'
  | 'rate_limit_error'
  | 'api_error';

export interface ErrorKind {
  readonly status: number;
  /** Whether the same request may succeed if it is sent again. */
  readonly retry: boolean;
  /** Whether the error's own message may be shown to callers. If not, they see the texts `en` and `ru`. */
  readonly expose: boolean;
  readonly type: ErrorType;
  readonly en: string;
  readonly ru: string;
  readonly retryAfterSeconds?: number;
}

/** All values of `error.code`, each with its status and its general texts. */
export const errorKinds = {
  invalid_api_key: {
    status: 401,
    retry: false,
    expose: true,
    type: 'authentication_error',
    en: 'The API key is missing, unknown or replaced. Send it as "Authorization: Bearer <API_KEY>".',
    ru: 'API-ключ не указан, неизвестен или заменён. Передайте его в заголовке «Authorization: Bearer <API_KEY>».',
  },
  unauthenticated: {
    status: 401,
    retry: false,
    expose: true,
    type: 'authentication_error',
    en: 'There is no valid session. Refresh the session, or sign in again.',
    ru: 'Нет действующей сессии. Обновите сессию или войдите снова.',
  },
  insufficient_balance: {
    status: 402,
    retry: false,
    expose: true,
    type: 'insufficient_quota',
    en: 'The balance is too low for this request. Refill it, or ask for less.',
    ru: 'Недостаточно средств на балансе для этого запроса. Пополните баланс или запросите меньше.',
  },
  account_banned: {
    status: 403,
    retry: false,
    expose: true,
    type: 'permission_error',
    en: 'This account is banned. Ask the support of this service why.',
    ru: 'Аккаунт заблокирован. Причину сообщит поддержка сервиса.',
  },
  csrf_failed: {
    status: 403,
    retry: false,
    expose: true,
    type: 'permission_error',
    en: 'The X-CSRF-Token header is missing or wrong. Send the csrf_token of the last sign-in or refresh of this session.',
    ru: 'Заголовок X-CSRF-Token отсутствует или неверен. Передайте csrf_token последнего входа или обновления сессии.',
  },
  origin_refused: {
    status: 403,
    retry: false,
    expose: true,
    type: 'permission_error',
    en: 'Requests from this origin are refused. Send them from a page of this service.',
    ru: 'Запросы с этого источника не принимаются. Отправляйте их со страницы этого сервиса.',
  },
  not_found: {
    status: 404,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'There is nothing at this address. /docs lists what there is.',
    ru: 'По этому адресу ничего нет. Список адресов: /docs.',
  },
  model_not_found: {
    status: 404,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'There is no such model. GET /v1/models lists those there are.',
    ru: 'Такой модели нет. Список моделей: GET /v1/models.',
  },
  method_not_allowed: {
    status: 405,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'This address does not take that method. The Allow header lists those it takes.',
    ru: 'Этот адрес не поддерживает такой метод. Допустимые методы — в заголовке Allow.',
  },
  idempotency_conflict: {
    status: 409,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'This Idempotency-Key was already used for another request. Send each request with a key of its own.',
    ru: 'Этот Idempotency-Key уже использован для другого запроса. Передавайте с каждым запросом свой ключ.',
  },
  already_linked: {
    status: 409,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'This account is already linked to a user. Check your own accounts, or ask support.',
    ru: 'Этот аккаунт уже привязан к пользователю. Проверьте свои аккаунты или обратитесь в поддержку.',
  },
  account_exists: {
    status: 409,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'You already have an account. Use it, or link another by its key.',
    ru: 'У вас уже есть аккаунт. Используйте его или привяжите другой по ключу.',
  },
  payload_too_large: {
    status: 413,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The request is too large. Send less at once.',
    ru: 'Запрос слишком велик. Отправьте меньше за один раз.',
  },
  unsupported_media_type: {
    status: 415,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'Send the body as JSON, with "Content-Type: application/json".',
    ru: 'Отправьте тело в формате JSON с заголовком «Content-Type: application/json».',
  },
  validation_failed: {
    status: 422,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The request is not valid. Correct what is named, and send it again.',
    ru: 'Запрос не прошёл проверку. Исправьте указанное и отправьте его снова.',
  },
  context_length_exceeded: {
    status: 400,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The chat is longer than the context of the model. Shorten it, or choose a model with a larger context.',
    ru: 'Диалог длиннее контекста модели. Сократите его или выберите модель с большим контекстом.',
  },
  content_too_long: {
    status: 422,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The content is longer than the model takes. Shorten it, or choose a model with a larger context.',
    ru: 'Содержимое длиннее, чем принимает модель. Сократите его или выберите модель с большим контекстом.',
  },
  model_disabled: {
    status: 422,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'This model is not available now. Choose one that GET /v1/models shows as active, or try again later.',
    ru: 'Эта модель сейчас недоступна. Выберите активную из GET /v1/models или повторите позже.',
  },
  upstream_rejected: {
    status: 400,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The model refused this request. Change it before you send it again.',
    ru: 'Модель отклонила этот запрос. Измените его, прежде чем отправить снова.',
  },
  invalid_code: {
    status: 422,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The code is unknown, used or expired. Check what you typed, or ask for another.',
    ru: 'Код неизвестен, использован или просрочен. Проверьте ввод или запросите другой.',
  },
  captcha_failed: {
    status: 422,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The captcha was not solved. Try another.',
    ru: 'Капча не пройдена. Попробуйте другую.',
  },
  unsafe_url: {
    status: 422,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'This URL may not be requested. Use a public https URL; an image can also be sent as a data URI.',
    ru: 'К этому URL нельзя обращаться. Укажите публичный https-адрес; изображение можно передать и как data URI.',
  },
  rate_limit_exceeded: {
    status: 429,
    retry: true,
    expose: true,
    type: 'rate_limit_error',
    en: 'The limit of requests, per minute or at once, is reached. Try again after the seconds of the retry-after header.',
    ru: 'Достигнут лимит запросов: в минуту или одновременных. Повторите через число секунд из заголовка retry-after.',
  },
  too_many_attempts: {
    status: 429,
    retry: true,
    expose: true,
    type: 'rate_limit_error',
    en: 'Too many attempts. Try again later.',
    ru: 'Слишком много попыток. Попробуйте позже.',
  },
  too_many_jobs: {
    status: 429,
    retry: true,
    expose: true,
    type: 'rate_limit_error',
    en: 'This account has too many jobs in the queue. Wait for some of them to end.',
    ru: 'У аккаунта слишком много задач в очереди. Дождитесь завершения части из них.',
  },
  job_cancelled: {
    status: 499,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The request was cancelled before its answer was complete. Send it again, or keep the connection open for longer.',
    ru: 'Запрос отменён до получения полного ответа. Отправьте его снова или дольше не закрывайте соединение.',
  },
  internal_error: {
    status: 500,
    retry: true,
    expose: false,
    type: 'api_error',
    en: 'Something went wrong here. Try again, and quote the x-request-id when you report it.',
    ru: 'Внутренняя ошибка. Повторите запрос; при обращении в поддержку укажите x-request-id.',
  },
  key_generation_failed: {
    status: 500,
    retry: true,
    expose: false,
    type: 'api_error',
    en: 'The new key could not be made. The old one still works: try again.',
    ru: 'Не удалось создать новый ключ. Старый ключ продолжает работать: повторите попытку.',
  },
  upstream_error: {
    status: 502,
    retry: true,
    expose: true,
    type: 'api_error',
    en: 'The model failed to answer. Nothing was charged for what it did not generate. Try again, or choose another model.',
    ru: 'Модель не смогла ответить. За то, что не сгенерировано, плата не взимается. Повторите запрос или выберите другую модель.',
  },
  queue_full: {
    status: 503,
    retry: true,
    expose: true,
    type: 'api_error',
    en: 'The queue is full. Try again shortly.',
    ru: 'Очередь заполнена. Повторите чуть позже.',
    retryAfterSeconds: 2,
  },
  service_unavailable: {
    status: 503,
    retry: true,
    expose: false,
    type: 'api_error',
    en: 'A part of the service is away for the moment. Try again shortly.',
    ru: 'Часть сервиса временно недоступна. Повторите чуть позже.',
    retryAfterSeconds: 2,
  },
  upstream_timeout: {
    status: 504,
    retry: true,
    expose: true,
    type: 'api_error',
    en: 'The model took too long to answer. Ask for a shorter answer, or try again.',
    ru: 'Модель не ответила вовремя. Запросите ответ короче или повторите запрос.',
  },
  deadline_exceeded: {
    status: 504,
    retry: true,
    expose: true,
    type: 'api_error',
    en: 'The request waited past its deadline. Try again when there is less to do.',
    ru: 'Истёк срок ожидания запроса. Повторите, когда нагрузка снизится.',
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;
