import { errorKinds, type ErrorCode, type ErrorKind } from './error-kinds.ts';
import { httpFaults } from './http-faults.ts';

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(errorKinds, value);
}

/**
 * The status of `job_cancelled` for callers who wait for a job that another cancels: they have not left, and clients must not
 * send by themselves what somebody did not want done.
 */
export const cancelledJobStatus = 409;

/** What the table says of a code, as its general type; with the words of the status, where it is not the code's own. */
export function errorKind(code: ErrorCode, status: number = errorKinds[code].status): ErrorKind {
  const kind = errorKinds[code];
  return status === kind.status ? kind : { ...kind, ...httpFaults[status], status };
}

/** One fault of a request: `loc` leads to it, such as `["body","messages",0,"role"]`. */
export interface ValidationIssue {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  /** The same in Russian; absent where there is none. */
  readonly msgRu?: string;
  readonly type: string;
}

export interface AppErrorDetails {
  /** Text for the caller, in place of the table's; shown only where the table, or this error, says `expose`. */
  readonly message?: string | undefined;
  /** The same in Russian, shown wherever `message` is. Without it, `message` follows the table's Russian text. */
  readonly messageRu?: string | undefined;
  readonly expose?: boolean | undefined;
  /** In place of the table's, where HTTP has a status of its own for what was wrong, and the set of codes has not. */
  readonly status?: number | undefined;
  readonly issues?: readonly ValidationIssue[] | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly cause?: unknown;
}

/** The one error that parts of the product throw at each other; `code` tells everything a caller may know. */
export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly #expose: boolean;
  readonly #messageRu: string | null;
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
  }

  /** What callers are told of errors of this kind. */
  get kind(): ErrorKind {
    return errorKind(this.code, this.status);
  }

  /** The field of the first fault, such as `messages.0.role`. */
  get param(): string | null {
    return this.issues[0]?.loc.slice(1).join('.') || null;
  }

  /** The text a caller may read. */
  get publicMessage(): string {
    return this.#expose ? this.message : this.kind.en;
  }

  /** The same in Russian; null for an error whose own text is in English alone. */
  get publicMessageRu(): string | null {
    const { en, ru } = this.kind;
    if (this.#expose && this.#messageRu !== null) return this.#messageRu;
    return this.publicMessage === en ? ru : null;
  }
}

/** As callers are told of it: what is none of ours is a fault here. */
export function toAppError(error: unknown): AppError {
  return error instanceof AppError ? error : new AppError('internal_error', { cause: error });
}

/** A 422 about one place of the request. */
export function invalidField(
  loc: readonly (string | number)[],
  msg: string,
  { code = 'validation_failed', type = 'value_error', msgRu }: FieldFault = {},
): AppError {
  return new AppError(code, {
    message: atPlace(loc, msg),
    ...(msgRu === undefined ? {} : { messageRu: atPlace(loc, msgRu) }),
    issues: [{ loc, msg, type, ...(msgRu === undefined ? {} : { msgRu }) }],
  });
}

export interface FieldFault {
  readonly code?: ErrorCode;
  readonly type?: string;
  /** `msg` in Russian. */
  readonly msgRu?: string;
}

/** The text of an issue with the field in front of it, where it is about one. */
export function atPlace(loc: readonly (string | number)[], msg: string): string {
  const path = loc.slice(1).join('.');
  return path === '' ? msg : `${path}: ${msg}`;
}
