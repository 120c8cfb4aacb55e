import type { AppError, ValidationIssue } from '../../shared/contract/errors.ts';
import { servedMethods } from './served-methods.ts';

export interface PresentErrorOptions {
  /** Whether to add Russian texts to the issues of a 422, for people to read. */
  readonly translatesErrors?: boolean | undefined;
}

/** The body of an error, used in responses and in the last event of a stream. */
export function presentError(
  error: AppError,
  { translatesErrors = false }: PresentErrorOptions = {},
): object {
  const { publicMessage, publicMessageRu } = error;
  return {
    error: {
      message: publicMessage,
      type: error.kind.type,
      param: error.param,
      code: error.code,
    },
    detail:
      error.status === 422
        ? issuesOf(error).map((issue) => presentIssue(error, issue, translatesErrors))
        : { error: error.code, ...inBothLanguages(error, publicMessage, publicMessageRu) },
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
const inBothLanguages = ({ kind }: AppError, english: string, russian: string | null | undefined) => ({
  message_ru: russian ?? `${kind.ru} Подробнее (по-английски): ${english}`,
  message_en: english,
});

/** The challenge for callers that sent a key. For callers without a key, RFC 6750 (section 3) forbids the `error`. */
const challenge = 'Bearer realm="model-gateway", error="invalid_token"';

/** The headers of an error response, except those that depend on its body or its request. */
export function errorHeaders({ code, kind, status, headers, param }: AppError): Record<string, string> {
  const { retry, retryAfterSeconds } = kind;
  return {
    // Caches may store statuses such as 404 by default, but this response contains the id of one request.
    'cache-control': 'no-store',
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    ...(code === 'invalid_api_key' && param === null ? { 'www-authenticate': challenge } : {}),
    ...(status === 501 ? { allow: servedMethods.join(', ') } : {}),
    ...(!retry && status === 409 ? { 'x-should-retry': 'false' } : {}),
    ...headers,
  };
}
