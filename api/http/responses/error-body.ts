import type { AppError, ValidationIssue } from '../../../shared/contract/errors.ts';
import { adviseOnCharge } from './possible-charge.ts';
import { servedMethods } from './served-methods.ts';

export interface PresentErrorOptions {
  /** Whether to add Russian texts to the issues of a 422, for people to read. */
  readonly translatesErrors?: boolean | undefined;
  /** Whether the request has an Idempotency-Key. */
  readonly hasKey?: boolean;
}

/** The body of an error, used in responses and in the last event of a stream. */
export function presentError(
  error: AppError,
  { translatesErrors = false, hasKey = false }: PresentErrorOptions = {},
): object {
  const { publicMessage, publicMessageRu, possiblyChargedId } = error;
  const advice = possiblyChargedId === null ? null : adviseOnCharge(possiblyChargedId, hasKey);
  const message = advice === null ? publicMessage : `${publicMessage} ${advice.en}`;
  return {
    error: {
      message,
      type: error.kind.type,
      param: error.param,
      code: error.code,
    },
    detail:
      error.status === 422
        ? issuesOf(error).map((issue) => presentIssue(error, issue, translatesErrors))
        : {
            error: error.code,
            message_ru: [toRussian(error, publicMessage, publicMessageRu), advice?.ru].join(' ').trimEnd(),
            message_en: message,
          },
  };
}

function issuesOf({ issues, publicMessage, publicMessageRu, code }: AppError): readonly ValidationIssue[] {
  if (issues.length > 0) return issues;
  const russian = publicMessageRu === null ? {} : { msgRu: publicMessageRu };
  return [{ loc: ['body'], msg: publicMessage, ...russian, type: code }];
}

function presentIssue(
  error: AppError,
  { loc, msg, msgRu, type }: ValidationIssue,
  isTranslated: boolean,
): object {
  return { loc, msg, type, ...(isTranslated ? inBothLanguages(error, msg, msgRu) : {}) };
}

/** Returns a text in both languages. A text without a translation is appended to the Russian text of its error code. */
const inBothLanguages = (error: AppError, english: string, russian: string | null | undefined) => ({
  message_ru: toRussian(error, english, russian),
  message_en: english,
});

const toRussian = ({ kind }: AppError, english: string, russian: string | null | undefined): string =>
  russian ?? `${kind.ru} Подробнее (по-английски): ${english}`;

/** The challenge for callers that sent a key. For callers without a key, RFC 6750 (section 3) forbids the `error`. */
const challenge = 'Bearer realm="model-gateway", error="invalid_token"';

/** The headers of an error response, except those that depend on its body or its request. */
export function errorHeaders(error: AppError, hasKey = false): Record<string, string> {
  const { code, kind, status, headers, param, possiblyChargedId } = error;
  const { retry, retryAfterSeconds } = kind;
  return {
    // Caches may store statuses such as 404 by default, but this response contains the id of one request.
    'cache-control': 'no-store',
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    ...(code === 'invalid_api_key' && param === null ? { 'www-authenticate': challenge } : {}),
    ...(status === 501 ? { allow: servedMethods.join(', ') } : {}),
    // OpenAI's clients send a request again after a 409 or a 5xx, unless this header says otherwise.
    ...((!retry && status === 409) || (possiblyChargedId !== null && !hasKey)
      ? { 'x-should-retry': 'false' }
      : {}),
    ...headers,
  };
}
