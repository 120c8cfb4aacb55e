import type { TSchema } from 'typebox';
import type { AdminScope } from './admin-terms.ts';
import type { ErrorCode } from './error-kinds.ts';
import type { ModelType } from './models.ts';
import type { ErrorText } from './web-errors.ts';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** The tags of the OpenAPI document, in order. Each is a chapter of /docs. */
export const tags = [
  'Chat',
  'Images',
  'Embeddings',
  'Jobs',
  'Batches',
  'Models',
  'Users',
  'Web Auth',
  'Web API Accounts',
  'System',
  'Admin',
] as const;
export type Tag = (typeof tags)[number];

/** A successful call and its response: realistic, and valid against the operation's schemas. */
export interface OperationExample {
  /** Path parameters, by name. */
  readonly path?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: unknown;
  /** The parts of a form; `@` and a file name for a file. */
  readonly form?: Readonly<Record<string, string>>;
  /** A JSON value, or the text of a response that is not JSON. Omitted if the response is binary. */
  readonly response?: unknown;
}

/** A response other than the usual success response and the errors: a stream, or a report with another status. */
export interface AdditionalResponse {
  readonly status: number;
  /** Of its example; by default that of its type or status. */
  readonly name?: string;
  /** Defaults to JSON. A response with the status and type of another one is an alternative to it. */
  readonly responseType?: string;
  /** Schema of a JSON response. For an event stream, schema of the data of one event. */
  readonly response: TSchema;
  /** When it is sent and what it contains, in one or more sentences. */
  readonly description: string;
  readonly example: OperationExample;
}

/** One API operation: routed, validated and described from this definition. */
export interface Operation {
  readonly operationId: string;
  readonly tag: Tag;
  readonly summary: string;
  /** Details beyond the summary: paragraphs, with names and values in backticks. */
  readonly description?: string;
  readonly method: Method;
  /** Below the version segment, in OpenAPI's form: `/models/{model_id}`. */
  readonly path: string;
  /** Whether the path is served without the version segment. */
  readonly atRoot?: true;
  /**
   * `web`: the account area's session. `refresh`: a session's refresh token. `metrics`: the token of the operator's
   * monitoring. `admin`: a token of the admin API, or a session that was started with one.
   */
  readonly auth: 'key' | 'none' | 'web' | 'refresh' | 'metrics' | 'admin';
  /**
   * The account area's operation that does the same with a session, such as `POST /v1/…`. Then an operation of a key takes
   * only the key.
   */
  readonly sessionTwin?: string;
  /** The scope that a token of the admin API needs; `all` by default. */
  readonly adminScope?: AdminScope;
  /** Set if an `Idempotency-Key` is kept for ever, and whether it is required. */
  readonly permanentKey?: 'required' | 'optional';
  /** If the session cookie is not valid, the refresh cookie is accepted instead, without a CSRF token. */
  readonly acceptsRefreshCookie?: true;
  /** Whether the response sets or clears session cookies. */
  readonly setsCookies?: true;
  /** Types of the models that perform the operation. Its requests are rate limited and charged. */
  readonly modelTypes?: readonly ModelType[];
  /** Whether a call counts towards the account's requests per minute although it calls no model. */
  readonly isCounted?: true;
  /** Maximum body size. A longer body is a 413. Without a body schema, no body is read. */
  readonly bodyLimitBytes?: number;
  /** Maximum small integers in the body's arrays, in addition to the values that any body may hold. */
  readonly bodyIntegers?: number;
  /** An object schema of the path's parameters. A parameter that it does not list may be any text. */
  readonly pathParameters?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /**
   * The same body as `multipart/form-data`, if that is accepted too. Without a `body`, the handler reads the form. Used
   * only for the OpenAPI document.
   */
  readonly formBody?: TSchema;
  /** Form fields whose parts may be files. */
  readonly formFiles?: readonly string[];
  readonly response: TSchema;
  /** Media type of the success response, if it is not JSON. */
  readonly responseType?: string;
  /** Success status. */
  readonly status?: number;
  readonly additionalResponses?: readonly AdditionalResponse[];
  /** Whether the response has an `ETag`. A caller that sends it back gets a 304. */
  readonly hasETag?: true;
  /** Whether the response is a file that supports `Range`, `If-Range` and all of HTTP's conditional headers. */
  readonly servesRanges?: true;
  /** Whether the file may still grow when it is sent. */
  readonly mayBeIncomplete?: true;
  /** Whether the query parameter `wait` makes the call wait until a job has ended. */
  readonly acceptsWait?: true;
  /** Whether a stream can continue without its reader, and be resumed. */
  readonly hasResumableStream?: true;
  /** Error codes, in addition to those implied by authentication, query and body. */
  readonly errors: readonly ErrorCode[];
  /**
   * Error texts that replace the general text of their code. For a 404, the text names the resource that the example
   * requests.
   */
  readonly errorTexts?: Partial<Record<ErrorCode, ErrorText>>;
  readonly example?: OperationExample;
}

/**
 * Returns whether the operation concerns only its caller's accounts and calls no model. Such calls have no per-minute
 * limit, only a limit of concurrent calls.
 */
export const isAccountOperation = ({ auth, modelTypes }: Operation): boolean =>
  (auth === 'key' && modelTypes === undefined) || auth === 'web';

/** Returns whether a call counts towards the account's requests per minute. */
export const countsAsRequest = ({ modelTypes, isCounted }: Operation): boolean =>
  modelTypes !== undefined || isCounted === true;

/** Returns whether browsers call the operation with session cookies, or to receive them. */
export const isWebOperation = ({ tag }: Operation): boolean =>
  tag === 'Web Auth' || tag === 'Web API Accounts';

/** Names the account for which a call with a session acts: its id in the account area. */
export const accountHeader = 'X-Api-Account';

/** Returns whether an operation of a key also takes a session of the account's user, with `X-Api-Account`. */
export const acceptsSession = ({ auth, sessionTwin }: Operation): boolean =>
  auth === 'key' && sessionTwin === undefined;

/** Returns whether the operation changes something, judged by its HTTP method. */
export const hasUnsafeMethod = ({ method }: Operation): boolean => method !== 'get';

/**
 * Returns whether the operation's 422 also describes invalid fields in Russian, because users fill in its input on a
 * page.
 */
export const translatesErrors = (operation: Operation): boolean =>
  isWebOperation(operation) && hasUnsafeMethod(operation);

/**
 * Returns whether another site could make a browser call the operation with session cookies, without CSRF protection.
 */
export const needsCsrfToken = (operation: Operation): boolean =>
  operation.auth === 'web' && hasUnsafeMethod(operation);

/** Returns whether a session of the admin API must send a CSRF token. */
export const changesAsOperator = (operation: Operation): boolean =>
  operation.auth === 'admin' && hasUnsafeMethod(operation);

/**
 * Returns whether the operation changes a user's data. Returns false for operations that end sessions: users must
 * always be able to lock an attacker out.
 */
export const changesUserData = (operation: Operation): boolean =>
  needsCsrfToken(operation) && operation.body !== undefined;

/** Returns whether the response stays open to deliver events. */
export const respondsAsStream = ({ responseType }: Operation): boolean =>
  responseType === 'text/event-stream';

/**
 * Concurrent calls of these operations per account or session. Well-behaved programs do not open this many
 * connections.
 */
export const maxCallsPerAccount = 128;

/** Maximum body size if the operation sets none. */
export const defaultBodyLimitBytes = 64_000;

/** Errors that every request to a model may return. */
export const creationErrors = [
  'insufficient_balance',
  'budget_exceeded',
  'model_not_allowed',
  'model_not_found',
  'idempotency_conflict',
  'model_disabled',
  'content_too_long',
  'context_length_exceeded',
  'unsafe_url',
  'upstream_rejected',
  'rate_limit_exceeded',
  'too_many_jobs',
  'upstream_error',
  'queue_full',
  'upstream_timeout',
  'deadline_exceeded',
] as const satisfies readonly ErrorCode[];

/** Keeps an operation's exact schemas in its type, so that handlers get the validated types. */
export function defineOperation<const T extends Operation>(operation: T): T {
  return operation;
}
