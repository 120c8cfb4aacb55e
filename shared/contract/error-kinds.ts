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
    en: 'The API key is missing, unknown or has been replaced. Send a valid key as "Authorization: Bearer <API_KEY>".',
    ru: 'API-ключ не указан, неизвестен или заменён. Передайте действующий ключ в заголовке «Authorization: Bearer <API_KEY>».',
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
    en: 'Your balance is too low for this request. Refill it, or send a smaller request.',
    ru: 'Недостаточно средств на балансе для этого запроса. Пополните баланс или уменьшите запрос.',
  },
  account_banned: {
    status: 403,
    retry: false,
    expose: true,
    type: 'permission_error',
    en: 'This account is banned. Contact support to find out why.',
    ru: 'Аккаунт заблокирован. Чтобы узнать причину, обратитесь в поддержку.',
  },
  csrf_failed: {
    status: 403,
    retry: false,
    expose: true,
    type: 'permission_error',
    en: 'The X-CSRF-Token header is missing or incorrect. Send the csrf_token from the last sign-in or refresh of this session.',
    ru: 'Заголовок X-CSRF-Token отсутствует или неверен. Передайте csrf_token, полученный при последнем входе или обновлении сессии.',
  },
  origin_refused: {
    status: 403,
    retry: false,
    expose: true,
    type: 'permission_error',
    en: 'Requests from this origin are not allowed. Send them from a page of this service.',
    ru: 'Запросы с этого источника не принимаются. Отправляйте их со страницы этого сервиса.',
  },
  forbidden: {
    status: 403,
    retry: false,
    expose: true,
    type: 'permission_error',
    en: 'You are not allowed to do this. Ask the operator of the service for access.',
    ru: 'Это действие вам не разрешено. Обратитесь за доступом к оператору сервиса.',
  },
  not_found: {
    status: 404,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'Nothing was found at this URL. See /docs for the available endpoints.',
    ru: 'По этому адресу ничего нет. Список доступных адресов: /docs.',
  },
  model_not_found: {
    status: 404,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'This model does not exist. GET /v1/models lists the available models.',
    ru: 'Такой модели нет. Список доступных моделей: GET /v1/models.',
  },
  method_not_allowed: {
    status: 405,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'This URL does not support this method. The Allow header lists the supported methods.',
    ru: 'Этот адрес не поддерживает такой метод. Допустимые методы — в заголовке Allow.',
  },
  idempotency_conflict: {
    status: 409,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'This Idempotency-Key was already used for a different request. Use a new key for each request.',
    ru: 'Этот Idempotency-Key уже использован для другого запроса. Используйте для каждого запроса новый ключ.',
  },
  already_linked: {
    status: 409,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'This account is already linked to a user. Check your own accounts, or contact support.',
    ru: 'Этот аккаунт уже привязан к пользователю. Проверьте свои аккаунты или обратитесь в поддержку.',
  },
  account_exists: {
    status: 409,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'You already have an account. Use it, or link another one by its API key.',
    ru: 'У вас уже есть аккаунт. Используйте его или привяжите другой по API-ключу.',
  },
  payload_too_large: {
    status: 413,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The request is too large. Make it smaller, or split it into several requests.',
    ru: 'Запрос слишком велик. Уменьшите его или разделите на несколько.',
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
    en: 'The request is not valid. Correct the fields named in the error, and send it again.',
    ru: 'Запрос не прошёл проверку. Исправьте указанные в ошибке поля и отправьте его снова.',
  },
  context_length_exceeded: {
    status: 400,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The messages exceed the context length of the model. Shorten them, or choose a model with a larger context.',
    ru: 'Сообщения не помещаются в контекст модели. Сократите их или выберите модель с большим контекстом.',
  },
  content_too_long: {
    status: 422,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The content is longer than the model accepts. Shorten it, or choose a model with a larger context.',
    ru: 'Содержимое длиннее, чем принимает модель. Сократите его или выберите модель с большим контекстом.',
  },
  model_disabled: {
    status: 422,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'This model is currently unavailable. Choose a model that GET /v1/models lists as active, or try again later.',
    ru: 'Эта модель сейчас недоступна. Выберите активную модель из списка GET /v1/models или повторите попытку позже.',
  },
  upstream_rejected: {
    status: 400,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The model rejected this request. Change the request before you send it again.',
    ru: 'Модель отклонила этот запрос. Измените его, прежде чем отправить снова.',
  },
  invalid_code: {
    status: 422,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The code is unknown, already used or expired. Check it for typos, or get a new code.',
    ru: 'Код неизвестен, уже использован или просрочен. Проверьте, нет ли опечаток, или получите новый.',
  },
  captcha_failed: {
    status: 422,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The captcha was not solved. Try a new one.',
    ru: 'Капча не пройдена. Попробуйте новую.',
  },
  unsafe_url: {
    status: 422,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'This URL is not allowed. Use a public https URL; an image can also be sent as a data URI.',
    ru: 'Этот URL использовать нельзя. Укажите публичный https-адрес; изображение можно также передать как data URI.',
  },
  rate_limit_exceeded: {
    status: 429,
    retry: true,
    expose: true,
    type: 'rate_limit_error',
    en: 'You sent too many requests per minute or have too many in progress. Try again after the number of seconds in the retry-after header.',
    ru: 'Превышен лимит запросов в минуту или одновременных запросов. Повторите через число секунд, указанное в заголовке retry-after.',
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
    en: 'This account has too many jobs in the queue. Wait for some of them to finish.',
    ru: 'У аккаунта слишком много задач в очереди. Дождитесь завершения части из них.',
  },
  job_cancelled: {
    status: 499,
    retry: false,
    expose: true,
    type: 'invalid_request_error',
    en: 'The request was cancelled before its response was complete. Send it again, and keep the connection open until the response ends.',
    ru: 'Запрос отменён до получения полного ответа. Отправьте его снова и не закрывайте соединение до конца ответа.',
  },
  internal_error: {
    status: 500,
    retry: true,
    expose: false,
    type: 'api_error',
    en: 'Something went wrong on our side. Try again; if the error persists, contact support with the x-request-id.',
    ru: 'Внутренняя ошибка. Повторите запрос; если ошибка не исчезнет, обратитесь в поддержку и укажите x-request-id.',
  },
  key_generation_failed: {
    status: 500,
    retry: true,
    expose: false,
    type: 'api_error',
    en: 'The new key could not be created. The old key still works. Try again.',
    ru: 'Не удалось создать новый ключ. Старый ключ продолжает работать. Повторите попытку.',
  },
  upstream_error: {
    status: 502,
    retry: true,
    expose: true,
    type: 'api_error',
    en: 'The model failed to respond. You are not charged for output that was not generated. Try again, or choose another model.',
    ru: 'Модель не смогла ответить. Плата за несгенерированный результат не взимается. Повторите запрос или выберите другую модель.',
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
    en: 'Part of the service is temporarily unavailable. Try again shortly.',
    ru: 'Часть сервиса временно недоступна. Повторите чуть позже.',
    retryAfterSeconds: 2,
  },
  upstream_timeout: {
    status: 504,
    retry: true,
    expose: true,
    type: 'api_error',
    en: 'The model took too long to respond. Request a shorter response, or try again.',
    ru: 'Модель не ответила вовремя. Запросите более короткий ответ или повторите запрос.',
  },
  deadline_exceeded: {
    status: 504,
    retry: true,
    expose: true,
    type: 'api_error',
    en: 'The request did not start before its deadline. Try again later.',
    ru: 'Обработка запроса не началась в отведённое время. Повторите попытку позже.',
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;
