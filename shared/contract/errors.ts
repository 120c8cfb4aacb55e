// decision 0005
import { errorKinds, type ErrorCode, type ErrorKind } from './error-kinds.ts';
import { httpStatusErrors } from './http-status-errors.ts';
import { shorten } from '../platform/runtime/shorten.ts';

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(errorKinds, value);
}

/**
 * The status of `job_cancelled` for callers waiting for a job that someone else cancels. They are still connected,
 * and clients must not automatically resend work that someone cancelled.
 */
export const cancelledJobStatus = 409;

/**
 * Returns the kind of an error code. If the status is not the code's own, the type and the texts are those of the
 * status, if it has any.
 */
export function errorKind(code: ErrorCode, status: number = errorKinds[code].status): ErrorKind {
  const kind = errorKinds[code];
  return status === kind.status ? kind : { ...kind, ...httpStatusErrors[status], status };
}

/** One invalid field of a request. `loc` is the path to it, such as `["body","messages",0,"role"]`. */
export interface ValidationIssue {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  /** The Russian text, if there is one. */
  readonly msgRu?: string;
  readonly type: string;
}

/** What the response to an error has besides its code and message. */
export interface ErrorDetails {
  /** Validation errors that only a worker could find; absent if there are none. */
  readonly issues?: readonly ValidationIssue[];
  /** Set if callers see the message although its code does not say so. */
  readonly expose?: true;
  /** When to try again, for the headers of the response; absent if that is not known. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** OpenAI's clients wait exactly as long as the second header says, and ignore more than a minute. */
export function retryAfter(ms: number): {
  readonly 'retry-after': string;
  readonly 'retry-after-ms': string;
} {
  const milliseconds = Math.ceil(Math.min(60_000, Math.max(1, ms)));
  return { 'retry-after': String(Math.ceil(milliseconds / 1_000)), 'retry-after-ms': String(milliseconds) };
}

export interface AppErrorDetails {
  /** Replaces the code's general text. Callers see it only if `expose` is true. */
  readonly message?: string | undefined;
  /** `message` in Russian. Without it, callers see the code's general Russian text, followed by `message`. */
  readonly messageRu?: string | undefined;
  /** Overrides the `expose` of the code's kind. */
  readonly expose?: boolean | undefined;
  /** Replaces the code's status, if HTTP has a specific status for the error but no code has it. */
  readonly status?: number | undefined;
  readonly issues?: readonly ValidationIssue[] | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The id of the request that failed, if it may have been charged nevertheless. */
  readonly possiblyChargedId?: string | undefined;
  /** Why it happened, for the log alone. By default the message of the cause. */
  readonly reason?: string | undefined;
  readonly cause?: unknown;
}

/** The reason of a failure for a log line. Null if none is known, or if it is an internal error, which is logged with its stack. */
export function toLogReason({ code, reason }: Pick<AppError, 'code' | 'reason'>): string | null {
  return code === 'internal_error' || reason === null ? null : shorten(reason);
}

/**
 * The only error type that is thrown between parts of the product. `code` determines everything that callers may see.
 */
export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly #expose: boolean;
  readonly #messageRu: string | null;
  readonly #details: AppErrorDetails;
  /**
   * The id of the request that failed, if a worker may have charged it nevertheless: its caller then learns how to find
   * out. Null if it is certainly not charged, or if the error's own text says what is charged.
   */
  readonly possiblyChargedId: string | null;
  readonly issues: readonly ValidationIssue[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, details: AppErrorDetails = {}) {
    super(details.message ?? errorKind(code, details.status).en, { cause: details.cause });
    this.code = code;
    this.status = details.status ?? errorKinds[code].status;
    this.#messageRu = details.messageRu ?? null;
    this.#expose = details.expose ?? errorKinds[code].expose;
    this.issues = details.issues ?? [];
    this.headers = details.headers ?? {};
    this.possiblyChargedId = details.possiblyChargedId ?? null;
    this.#details = details;
  }

  /** Returns the same error for a request that may have been charged. */
  asPossiblyCharged(requestId: string): AppError {
    return new AppError(this.code, { cause: this, ...this.#details, possiblyChargedId: requestId });
  }

  /** Whether callers see the message although its code does not say so. */
  get isExposed(): boolean {
    return this.#details.expose === true;
  }

  /** The kind of the error's code and status. */
  get kind(): ErrorKind {
    return errorKind(this.code, this.status);
  }

  /** Why it happened, for the log: callers do not see it. Null if nothing is known beyond the code. */
  get reason(): string | null {
    const { reason, cause } = this.#details;
    if (reason !== undefined) return reason;
    if (cause instanceof AppError) return cause.reason;
    if (cause instanceof Error) return cause.message;
    return this.message === this.kind.en ? null : this.message;
  }

  /** The first invalid field, such as `messages.0.role`. */
  get param(): string | null {
    return this.issues[0]?.loc.slice(1).join('.') || null;
  }

  /** The text that the caller may read. */
  get publicMessage(): string {
    return this.#expose ? this.message : this.kind.en;
  }

  /** The Russian text. Null if the error's own message exists only in English. */
  get publicMessageRu(): string | null {
    const { en, ru } = this.kind;
    if (this.#expose && this.#messageRu !== null) return this.#messageRu;
    return this.publicMessage === en ? ru : null;
  }
}

/** Converts any error to an AppError. An unknown error becomes `internal_error`. */
export function toAppError(error: unknown): AppError {
  return error instanceof AppError ? error : new AppError('internal_error', { cause: error });
}

/** Builds a 422 about one field of the request. */
export function invalidField(
  loc: readonly (string | number)[],
  msg: string,
  { code = 'validation_failed', type = 'value_error', msgRu }: FieldErrorOptions = {},
): AppError {
  return new AppError(code, {
    message: prefixWithField(loc, msg),
    ...(msgRu === undefined ? {} : { messageRu: prefixWithField(loc, msgRu) }),
    issues: [{ loc, msg, type, ...(msgRu === undefined ? {} : { msgRu }) }],
  });
}

export interface FieldErrorOptions {
  readonly code?: ErrorCode;
  readonly type?: string;
  /** `msg` in Russian. */
  readonly msgRu?: string;
}

/** Prefixes an issue's text with its field, if it has one. */
export function prefixWithField(loc: readonly (string | number)[], msg: string): string {
  const path = loc.slice(1).join('.');
  return path === '' ? msg : `${path}: ${msg}`;
}
