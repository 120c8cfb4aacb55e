import type { AppError } from '../../shared/contract/errors.ts';
import { servedMethods } from './served-methods.ts';

/** The body of an error, on the wire and in a stream's last event. */
export function presentError(error: AppError): object {
  const detail =
    error.status === 422
      ? issuesOf(error)
      : { error: error.code, message_ru: describeInRussian(error), message_en: error.publicMessage };
  return {
    error: {
      message: error.publicMessage,
      type: error.kind.type,
      param: error.param,
      code: error.code,
    },
    detail,
  };
}

/** The message in Russian. Most messages are in English alone: those follow what the code means in Russian. */
function describeInRussian({ kind, publicMessage, publicMessageRu }: AppError): string {
  return publicMessageRu ?? `${kind.ru} Подробнее (по-английски): ${publicMessage}`;
}

function issuesOf(error: AppError): object[] {
  if (error.issues.length > 0) return error.issues.map(({ loc, msg, type }) => ({ loc, msg, type }));
  return [{ loc: ['body'], msg: error.publicMessage, type: error.code }];
}

/** For callers that sent a key; callers without one get no `error` (RFC 6750, 3). */
const challenge = 'Bearer realm="model-gateway", error="invalid_token"';

/** The headers of an error's answer, but for those of its body and its request. */
export function errorHeaders({ code, kind, status, headers }: AppError): Record<string, string> {
  const { retry, retryAfterSeconds } = kind;
  return {
    // Statuses such as 404 may be kept by caches unless they are told, and this answer names one request.
    'cache-control': 'no-store',
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    ...(code === 'invalid_api_key' ? { 'www-authenticate': challenge } : {}),
    ...(status === 501 ? { allow: servedMethods.join(', ') } : {}),
    ...(!retry && status === 409 ? { 'x-should-retry': 'false' } : {}),
    ...headers,
  };
}
