import type { ErrorObject } from 'ajv/dist/2020.js';
import type { ValidationIssue } from './errors.ts';
import { lengthHint, wrongTypeHint } from './fields.ts';
import { findImageUrlProblem } from './image-url.ts';
import { reasonTexts, writeReason } from './reason-texts.ts';
import type { ReasonText } from './reasons.ts';

/** A text format that JSON Schema has no keyword for. */
export interface TextFormat {
  readonly isValid: (text: string) => boolean;
  /** Describes what is wrong with an invalid text. */
  readonly describe: (text: string) => string;
}
export type TextFormats = Readonly<Record<string, TextFormat>>;

/** The text of an issue. It completes a sentence that starts with the field. */
type IssueText = Pick<ValidationIssue, 'msg' | 'msgRu'>;

const toIssue = ({ en, ru }: ReasonText): IssueText => ({ msg: en, msgRu: ru });

const formatTexts: Readonly<Record<string, IssueText>> = {
  date: {
    msg: 'must be a valid date in the format YYYY-MM-DD',
    msgRu: 'должно быть существующей датой в формате ГГГГ-ММ-ДД',
  },
  'image-url': {
    msg: 'must be an https URL of at most 2083 characters or a base64 data URI of an image (data:image/…) of at most 20 MB',
    msgRu:
      'должно быть https-адресом не длиннее 2083 символов или base64 data URI изображения (data:image/…) не больше 20 МБ',
  },
  'plain-text': {
    msg: 'must be one line of text with at least one visible character and without control characters or characters that change the text direction',
    msgRu:
      'должно быть одной строкой хотя бы с одним видимым символом, без управляющих символов и символов, меняющих направление текста',
  },
  'without-secret': {
    msg: 'must not contain an API key, a token, a refill code or a part of one: addresses are stored in histories and in logs of proxies. Send it in the body of POST /v1/admin/find',
    msgRu:
      'не должно содержать ключа API, токена, кода пополнения или их части: адреса остаются в истории браузеров и журналах прокси. Пошлите его в теле POST /v1/admin/find',
  },
  reason: {
    msg: 'must be one line of text with at least one visible character, without control characters, and without an API key, a token or a refill code: addresses are stored in logs of proxies',
    msgRu:
      'должно быть одной строкой хотя бы с одним видимым символом, без управляющих символов, ключей API, токенов и кодов пополнения: адреса остаются в журналах прокси',
  },
  'not-blank': toIssue(reasonTexts.isEmpty),
};

/** Describes an Ajv error in readable English and Russian. */
export function describeIssue(error: ErrorObject, formats: TextFormats = {}): IssueText {
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'required':
      return toIssue(reasonTexts.isRequired);
    case 'enum': {
      const values = listValues(params['allowedValues'] as unknown[]);
      return toIssue(writeReason('isOneOf', { values }));
    }
    case 'format': {
      const name = String(params['format']);
      if (name === 'image-url') {
        const { msg, msgRu } = formatTexts[name]!;
        const problem = findImageUrlProblem(String(error.data));
        return problem === null
          ? { msg }
          : { msg: `${msg}; ${problem.msg}`, msgRu: `${msgRu}; ${problem.msgRu}` };
      }
      const custom = formats[name];
      if (custom !== undefined) return { msg: custom.describe(String(error.data)) };
      return formatTexts[name] ?? { msg: `must be a ${name}`, msgRu: `должно быть в формате ${name}` };
    }
    case 'type': {
      const hint = (error.parentSchema as { [wrongTypeHint]?: string })[wrongTypeHint];
      const types = [params['type']].flat().map((type) => ({ type: String(type) }));
      const text = describeTypes(types);
      return hint === undefined ? text : { msg: `${text.msg}: ${hint}` };
    }
    case 'anyOf':
      return describeTypes(error.schema as TypeSchema[]);
    case 'minLength':
    case 'minItems': {
      if (params['limit'] === 1) return toIssue(reasonTexts.isEmpty);
      const text = describeLength(error.keyword, 'least', Number(params['limit']));
      const hint = (error.parentSchema as { [lengthHint]?: string })[lengthHint];
      return hint === undefined ? text : { ...text, msg: `${text.msg}: ${hint}` };
    }
    case 'maxLength':
    case 'maxItems':
      return describeLength(error.keyword, 'most', Number(params['limit']));
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum': {
      const bound = `${String(params['comparison'])} ${String(params['limit'])}`;
      return { msg: `must be ${bound}`, msgRu: `должно быть ${bound}` };
    }
    default:
      return { msg: error.message ?? 'is not valid' };
  }
}

/** Omits null: a field may be null, but a caller that sent another value did not mean null. */
function listValues(values: readonly unknown[]): string {
  const shown = values.filter((value) => value !== null);
  return (shown.length > 0 ? shown : values).map(String).join(', ');
}

function describeLength(keyword: string, bound: 'least' | 'most', limit: number): IssueText {
  const counted = keyword.endsWith('Length')
    ? { en: 'character', one: 'символа', many: 'символов' }
    : { en: 'item', one: 'элемента', many: 'элементов' };
  // After "at least" and "at most", Russian uses the genitive: singular after 1, 21, 31, but not 11.
  const isOne = limit % 10 === 1 && limit % 100 !== 11;
  return {
    msg: `must have at ${bound} ${limit} ${counted.en}${limit === 1 ? '' : 's'}`,
    msgRu: `должно содержать не ${bound === 'least' ? 'менее' : 'более'} ${limit} ${isOne ? counted.one : counted.many}`,
  };
}

interface TypeSchema {
  readonly type?: string;
  readonly items?: TypeSchema;
}

const describeTypes = (types: readonly TypeSchema[]): IssueText => ({
  msg: `must be ${joinWords(types.map(nameType), 'or')}`,
  msgRu: `должно иметь тип: ${types.map(nameTypeInRussian).join(' или ')}`,
});

function nameType({ type = 'value', items }: TypeSchema): string {
  if (type === 'null') return type;
  const article = /^[aeiou]/.test(type) ? 'an' : 'a';
  return `${article} ${type}${type === 'array' && items?.type !== undefined ? ` of ${items.type}s` : ''}`;
}

const typesInRussian: Readonly<Record<string, readonly [one: string, ofMany: string]>> = {
  string: ['строка', 'строк'],
  number: ['число', 'чисел'],
  integer: ['целое число', 'целых чисел'],
  boolean: ['true или false', 'логических значений'],
  array: ['массив', 'массивов'],
  object: ['объект', 'объектов'],
};

function nameTypeInRussian({ type = 'value', items }: TypeSchema): string {
  const name = typesInRussian[type]?.[0] ?? type;
  const ofItems = type === 'array' && items?.type !== undefined ? typesInRussian[items.type]?.[1] : undefined;
  return ofItems === undefined ? name : `${name} ${ofItems}`;
}

/** Joins words as "a, b or c". */
export function joinWords(words: readonly string[], last: 'and' | 'or'): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`;
}
