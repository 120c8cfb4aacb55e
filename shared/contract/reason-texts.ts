import { fill, findFilled, type ReasonText, type ValuesOf } from './reasons.ts';

const onePerLine = {
  en: 'Write one object per line, without brackets around them or commas between them.',
  ru: 'Пишите по одному объекту в строке, без скобок вокруг них и запятых между ними.',
};

/**
 * The commonest reasons of failures. Responses say them in English, and some in both languages; where only the English
 * text is left, as in results of batches and in the request log, `translateReason` finds the Russian one.
 */
export const reasonTexts = {
  modelNotFound: {
    en: 'The model "{model}" does not exist. GET /v1/models lists the available models.',
    ru: 'Модели «{model}» не существует. Список доступных моделей: GET /v1/models.',
  },
  modelNotFoundButSimilar: {
    en: 'The model "{model}" does not exist. Did you mean "{similar}"? GET /v1/models lists the available models.',
    ru: 'Модели «{model}» не существует. Возможно, вы имели в виду «{similar}»? Список доступных моделей: GET /v1/models.',
  },
  modelDisabled: {
    en: 'The model "{model}" is disabled, or no vendor currently serves it. Choose a model that GET /v1/models lists as active, or try again later.',
    ru: 'Модель «{model}» отключена или сейчас никем не обслуживается. Выберите модель, активную в GET /v1/models, или повторите позже.',
  },
  thisModelDisabled: {
    en: 'This model is disabled, or no vendor currently serves it. Choose a model that GET /v1/models lists as active, or try again later.',
    ru: 'Эта модель отключена или сейчас никем не обслуживается. Выберите модель, активную в GET /v1/models, или повторите позже.',
  },
  wrongModelType: {
    en: '"{model}" is a model of type {type}, but this endpoint accepts only {types} models.',
    ru: '«{model}» — модель типа {type}, а этот адрес принимает только модели типа {types}.',
  },
  contextTooSmall: {
    en: "This model's maximum context length is {context} tokens, but the messages are longer. Tools, files and images count too. Shorten the messages, or choose a model with a larger context.",
    ru: 'Контекст этой модели — {context} токенов, а сообщения длиннее. Инструменты, файлы и изображения тоже учитываются. Сократите сообщения или выберите модель с большим контекстом.',
  },
  notAnObject: { en: 'The body must be a JSON object.', ru: 'Тело должно быть объектом JSON.' },
  streamInBatch: {
    en: 'cannot be true in a batch: remove this field',
    ru: 'в пакете не может быть true: уберите это поле',
  },
  formatInBatch: {
    en: 'must be "url" in a batch: remove this field, or set it to "url"',
    ru: 'в пакете может быть только "url": уберите это поле или укажите "url"',
  },
  noContent: {
    en: 'must not be empty, because no message has any content: add the text that the model is to respond to',
    ru: 'не должно быть пустым: ни в одном сообщении нет содержимого. Добавьте текст, на который модель ответит',
  },
  isRequired: { en: 'is required', ru: 'обязательное поле' },
  isOneOf: { en: 'must be one of: {values}', ru: 'допустимые значения: {values}' },
  isEmpty: { en: 'must not be empty', ru: 'не должно быть пустым' },
  string: { en: 'must be a string', ru: 'должно иметь тип: строка' },
  number: { en: 'must be a number', ru: 'должно иметь тип: число' },
  integer: { en: 'must be an integer', ru: 'должно иметь тип: целое число' },
  boolean: { en: 'must be a boolean', ru: 'должно иметь тип: true или false' },
  array: { en: 'must be an array', ru: 'должно иметь тип: массив' },
  object: { en: 'must be an object', ru: 'должно иметь тип: объект' },
  isAtLeast: { en: 'must be >= {limit}', ru: 'должно быть >= {limit}' },
  isAtMost: { en: 'must be <= {limit}', ru: 'должно быть <= {limit}' },
  emptyFile: {
    en: 'The file has no lines. Write one JSON object per line.',
    ru: 'В файле нет строк. Пишите по одному объекту JSON в строке.',
  },
  tooManyLines: {
    en: 'The file has more than {count} lines. Split it into several files.',
    ru: 'В файле больше {count} строк. Разделите его на несколько файлов.',
  },
  lineIsNotUtf8: { en: 'The line is not valid UTF-8.', ru: 'Строка не в кодировке UTF-8.' },
  lineIsNotObject: {
    en: `The line is not a JSON object. ${onePerLine.en}`,
    ru: `Строка — не объект JSON. ${onePerLine.ru}`,
  },
  lineIsNotJson: { en: 'The line is not valid JSON.', ru: 'Строка — некорректный JSON.' },
  lineIsNotJsonWhy: {
    en: `The line is not valid JSON{reason}. ${onePerLine.en}`,
    ru: `Строка — некорректный JSON{reason}. ${onePerLine.ru}`,
  },
  lineMethod: { en: 'The method of a line must be "POST".', ru: 'method в строке должен быть "POST".' },
  lineUrl: { en: 'The url of a line must be a string.', ru: 'url в строке должен быть текстом в кавычках.' },
  lineBody: {
    en: 'Each line needs a body, which must be an object.',
    ru: 'В каждой строке нужен body, и это должен быть объект.',
  },
  noCustomId: { en: 'Each line needs a custom_id.', ru: 'В каждой строке нужен custom_id.' },
  wrongCustomId: {
    en: 'The custom_id of a line must be a string of 1 to {max} characters.',
    ru: 'custom_id в строке должен быть текстом длиной от 1 до {max} символов.',
  },
  sameCustomId: {
    en: 'Line {line} has the same custom_id, {id}. Each line needs its own.',
    ru: 'В строке {line} такой же custom_id, {id}. У каждой строки он должен быть свой.',
  },
  batchLines: {
    en: '{count} lines called the model, {failed} of them failed',
    ru: 'Строк, отправленных модели: {count}, из них с ошибкой: {failed}',
  },
  urlMismatch: {
    en: 'The url of the line is {url}, and the endpoint of the batch is {endpoint}.',
    ru: 'url строки — {url}, а пакет создан для {endpoint}.',
  },
} as const satisfies Readonly<Record<string, ReasonText>>;

/** Returns a reason in both languages. */
export function writeReason<Key extends keyof typeof reasonTexts>(
  key: Key,
  ...[values]: ValuesOf<(typeof reasonTexts)[Key]>
): ReasonText {
  const { en, ru } = reasonTexts[key];
  return { en: fill(en, values ?? {}), ru: fill(ru, values ?? {}) };
}

function translateText(text: string): string | null {
  const found = findFilled(reasonTexts, text);
  return found === null ? null : fill(found.ru, found.values);
}

/** The names and numbers of a path to a field. */
const field = /^[\w.[\]-]{1,300}$/;
const further = /^(.*) \(and (\d{1,6}) more\)$/s;

/**
 * Translates the English text of an error, with the field before it and the number of further ones behind it.
 * @returns null if it is none of the known reasons
 */
export function translateReason(text: string): string | null {
  const [, start = text, count] = further.exec(text) ?? [];
  const end = count === undefined ? '' : ` (и ещё ${count})`;
  const whole = translateText(start);
  if (whole !== null) return `${whole}${end}`;
  const colon = start.indexOf(': ');
  const path = start.slice(0, Math.max(0, colon));
  if (!field.test(path)) return null;
  const rest = translateText(start.slice(colon + 2));
  return rest === null ? null : `${path}: ${rest}${end}`;
}
