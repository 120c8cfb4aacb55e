import type { Language } from './messages.ts';

/** A field of the body, the query or the path that is wrong. */
export interface FieldIssue {
  /** For example `email`, or `messages.0.content`. */
  readonly field: string;
  readonly code: string;
  readonly text: Readonly<Record<Language, string>>;
}

interface Issue {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
  readonly message_en?: string;
  readonly message_ru?: string;
}

interface ErrorBody {
  readonly error?: { readonly message?: string; readonly code?: string | null };
  readonly detail?: readonly Issue[] | { readonly message_en?: string; readonly message_ru?: string };
}

const generalTexts = {
  network: {
    en: 'The server could not be reached. Check your connection and try again.',
    ru: 'Не удалось связаться с сервером. Проверьте подключение и попробуйте ещё раз.',
  },
  other: {
    en: 'The server responded with an error ({status}). Try again later.',
    ru: 'Сервер ответил ошибкой ({status}). Попробуйте позже.',
  },
} as const;

/** A call of the API that failed, with texts for people. */
export class ApiError extends Error {
  /** Of the response; 0 if there was none. */
  readonly status: number;
  /** `error.code` of the API, `network` without a response, or `unknown`. */
  readonly code: string;
  readonly text: Readonly<Record<Language, string>>;
  readonly issues: readonly FieldIssue[];
  /** To quote when asking for support. Null if there was no response. */
  readonly requestId: string | null;
  /** When to try again. Null if the server did not say. */
  readonly retryAfterSeconds: number | null;

  private constructor(fields: Omit<ApiError, keyof Error | 'isTemporary'>) {
    super(fields.text.en);
    this.name = 'ApiError';
    this.status = fields.status;
    this.code = fields.code;
    this.text = fields.text;
    this.issues = fields.issues;
    this.requestId = fields.requestId;
    this.retryAfterSeconds = fields.retryAfterSeconds;
  }

  /** Whether the same call may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** @param body the parsed body of the response, of any form */
  static ofResponse(response: Response, body: unknown): ApiError {
    const { error, detail } = (typeof body === 'object' && body !== null ? body : {}) as ErrorBody;
    const issues = Array.isArray(detail) ? (detail as readonly Issue[]).map(readIssue) : [];
    const texts = Array.isArray(detail)
      ? {}
      : ((detail ?? {}) as { message_en?: string; message_ru?: string });
    const first = issues[0]?.text;
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
    return new ApiError({
      status: response.status,
      code: error?.code ?? 'unknown',
      text: {
        en: texts.message_en ?? first?.en ?? error?.message ?? fillStatus('en', response.status),
        ru: texts.message_ru ?? first?.ru ?? error?.message ?? fillStatus('ru', response.status),
      },
      issues,
      requestId: response.headers.get('x-request-id'),
      retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : null,
    });
  }

  /** For an error event in a stream, whose body is that of an error response. */
  static ofStream(body: unknown, response: Response): ApiError {
    return ApiError.ofResponse(response, body);
  }

  static ofNetwork(): ApiError {
    const { network: text } = generalTexts;
    return new ApiError({
      status: 0,
      code: 'network',
      text,
      issues: [],
      requestId: null,
      retryAfterSeconds: null,
    });
  }
}

const fillStatus = (language: Language, status: number): string =>
  generalTexts.other[language].replace('{status}', String(status));

function readIssue({ loc, msg, type, message_en, message_ru }: Issue): FieldIssue {
  const [place, ...path] = loc;
  const field = (path.length > 0 ? path : [place ?? '']).join('.');
  return { field, code: type, text: { en: message_en ?? msg, ru: message_ru ?? msg } };
}

/** Returns the text of whatever was thrown. */
export function describeError(error: unknown, language: Language): string {
  if (error instanceof ApiError) return error.text[language];
  return error instanceof Error ? error.message : String(error);
}

/** Returns the text for a field of a form, or null if the error is not about it. */
export function findFieldError(error: unknown, field: string, language: Language): string | null {
  if (!(error instanceof ApiError)) return null;
  return error.issues.find((issue) => issue.field === field)?.text[language] ?? null;
}
