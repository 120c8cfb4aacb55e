/** Texts and type shown to callers instead of those of the error's code. */
interface HttpStatusError {
  readonly type: 'invalid_request_error';
  readonly en: string;
  readonly ru: string;
}

const type = 'invalid_request_error';

/**
 * HTTP statuses that have no code of their own in the closed set of codes. Such an error gets the nearest code and
 * the text of its status. A code whose own status is listed here keeps its own text.
 */
export const httpStatusErrors: Readonly<Record<number, HttpStatusError>> = {
  400: {
    type,
    en: 'This is not a valid HTTP request. Check the client or proxy.',
    ru: 'Это некорректный HTTP-запрос. Проверьте клиент или прокси.',
  },
  408: {
    type,
    en: 'The request or its body was not received in time. Send the complete request again.',
    ru: 'Запрос или его тело не получены вовремя. Отправьте весь запрос снова.',
  },
  409: {
    type,
    en: 'The job for this request was cancelled. Send the request again to start a new job.',
    ru: 'Задача, выполнявшая этот запрос, отменена. Отправьте запрос снова, чтобы создать новую.',
  },
  412: {
    type,
    en: 'The precondition of the request failed: the file is a different version. Send the request without If-Match and If-Unmodified-Since.',
    ru: 'Условие запроса не выполнено: версия файла другая. Отправьте запрос без If-Match и If-Unmodified-Since.',
  },
  416: {
    type,
    en: 'The requested range is outside the file. Request bytes within the length given in the Content-Range header.',
    ru: 'Запрошенный диапазон находится за пределами файла. Запросите байты в пределах длины из заголовка Content-Range.',
  },
  417: {
    type,
    en: 'The value of the Expect header is not supported. Send "Expect: 100-continue", or remove the header.',
    ru: 'Значение заголовка Expect не поддерживается. Передайте «Expect: 100-continue» или уберите заголовок.',
  },
  431: {
    type,
    en: 'The request headers are too large or too many. Send fewer or shorter headers.',
    ru: 'Заголовки запроса слишком велики, или их слишком много. Отправьте меньше заголовков или сократите их.',
  },
  501: {
    type,
    en: 'No endpoint supports this method. The Allow header lists the supported methods.',
    ru: 'Ни один адрес не поддерживает такой метод. Допустимые методы — в заголовке Allow.',
  },
  505: {
    type,
    en: 'This HTTP version is not supported. Use HTTP/1.1.',
    ru: 'Эта версия HTTP не поддерживается. Используйте HTTP/1.1.',
  },
};
