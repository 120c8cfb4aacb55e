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
    en: 'The request, or its body, did not arrive in time. Send it again, whole.',
    ru: 'Запрос или его тело не поступили вовремя. Отправьте запрос снова, целиком.',
  },
  409: {
    type,
    en: 'The job that does this request was cancelled. Send the request again to have it done by another.',
    ru: 'Задача, выполнявшая этот запрос, отменена. Отправьте запрос снова, чтобы его выполнила другая.',
  },
  412: {
    type,
    en: 'What the request is conditional on does not hold: the file is another version. Send it without If-Match and If-Unmodified-Since.',
    ru: 'Условие запроса не выполнено: версия файла другая. Отправьте запрос без If-Match и If-Unmodified-Since.',
  },
  416: {
    type,
    en: 'The file ends before the bytes that the Range header asks for. Ask for bytes within the length that Content-Range tells.',
    ru: 'Файл заканчивается раньше байтов из заголовка Range. Запросите байты в пределах длины из заголовка Content-Range.',
  },
  417: {
    type,
    en: 'The Expect header is not known here. Send "Expect: 100-continue", or none.',
    ru: 'Значение заголовка Expect не поддерживается. Передайте «Expect: 100-continue» или уберите заголовок.',
  },
  431: {
    type,
    en: 'The headers of the request are too large, or too many. Send fewer or shorter ones.',
    ru: 'Заголовки запроса слишком велики, или их слишком много. Отправьте меньше заголовков или сократите их.',
  },
  501: {
    type,
    en: 'No address takes this method. The Allow header lists the methods there are.',
    ru: 'Ни один адрес не поддерживает такой метод. Допустимые методы — в заголовке Allow.',
  },
  505: {
    type,
    en: 'This version of HTTP is not spoken here. Use HTTP/1.1.',
    ru: 'Эта версия HTTP не поддерживается. Используйте HTTP/1.1.',
  },
};
