import type { TSchema } from 'typebox';
import type { ErrorCode } from './error-kinds.ts';
import type { ModelType } from './models.ts';
import type { ErrorText } from './web-errors.ts';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** Chapters of the description, in its order. */
export const tags = [
  'Chat',
  'Images',
  'Embeddings',
  'Jobs',
  'Models',
  'Users',
  'Web Auth',
  'Web API Accounts',
  'System',
] as const;
export type Tag = (typeof tags)[number];

/** A call that works, and its answer: realistic, and valid by the operation's schemas. */
export interface OperationExample {
  /** Values of the path's parameters, by name. */
  readonly path?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: unknown;
  /** A JSON value, or the text of an answer that is not JSON; left out where the answer is bytes. */
  readonly response?: unknown;
}

/** An answer beside the usual one of success and the errors: a stream, or a report with a status of its own. */
export interface FurtherAnswer {
  readonly status: number;
  /** JSON unless given. */
  readonly responseType?: string;
  /** Of a JSON answer; of the data of one event where the answer is an event stream. */
  readonly response: TSchema;
  /** When it comes and how it reads, as a sentence or more. */
  readonly description: string;
  readonly example: OperationExample;
}

/** One operation of the API: what the router serves, the validator checks and the description tells. */
export interface Operation {
  readonly operationId: string;
  readonly tag: Tag;
  readonly summary: string;
  /** What the summary leaves open: paragraphs, with names and values in backticks. */
  readonly description?: string;
  readonly method: Method;
  /** Below the version segment, in OpenAPI's form: `/models/{model_id}`. */
  readonly path: string;
  /** The path has no version segment in front. */
  readonly atRoot?: true;
  /** `web`: the session of the account area. `refresh`: the refresh token of one. */
  readonly auth: 'key' | 'none' | 'web' | 'refresh';
  /** Where the session cookie opens nothing, the refresh cookie opens the session, without a CSRF token. */
  readonly acceptsRefreshCookie?: true;
  /** Its answer sets the cookies of a session, or takes them away. */
  readonly setsCookies?: true;
  /** Types of the models that it asks for work; its requests are counted, and paid. */
  readonly modelTypes?: readonly ModelType[];
  /** The largest body that is read; a longer one is a 413. Without a body schema no body is read. */
  readonly bodyLimitBytes?: number;
  /** How many small integers its arrays may hold, beside the values that any body may hold. */
  readonly bodyIntegers?: number;
  /** An object of the path's parameters; one that it does not have is any text. */
  readonly pathParameters?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** The same body as `multipart/form-data`, where it may come as that as well; for the description. */
  readonly formBody?: TSchema;
  /** The fields of such a form whose parts may be files. */
  readonly formFiles?: readonly string[];
  readonly response: TSchema;
  /** Of the answer of success, where it is not JSON. */
  readonly responseType?: string;
  /** Status of success. */
  readonly status?: number;
  readonly furtherAnswers?: readonly FurtherAnswer[];
  /** Its answer has an `ETag`, and is a 304 to a caller who names that. */
  readonly hasETag?: true;
  /** Its answer is a file: `Range`, `If-Range` and all conditional headers of HTTP hold for it. */
  readonly servesRanges?: true;
  /** What it can fail with, beside what its authentication, query and body already tell. */
  readonly errors: readonly ErrorCode[];
  /** What its errors say where that is not the general text of their code; a 404, of what its example names. */
  readonly errorTexts?: Partial<Record<ErrorCode, ErrorText>>;
  readonly example?: OperationExample;
}

/** Whether it is about its caller's own accounts and asks no model: it is not counted by the minute, but bounded at once. */
export const asksForOwnAccount = ({ auth, modelTypes }: Operation): boolean =>
  (auth === 'key' && modelTypes === undefined) || auth === 'web';

/** Whether browsers call it with the cookies of a session, or to be given them. */
export const isOfWebArea = ({ tag }: Operation): boolean => tag === 'Web Auth' || tag === 'Web API Accounts';

/** Whether it changes something, as HTTP's methods tell. */
export const isUnsafe = ({ method }: Operation): boolean => method !== 'get';

/** Whether its 422 tells the faults in Russian as well, because people fill in on a page what it is called with. */
export const translatesFaults = (operation: Operation): boolean =>
  isOfWebArea(operation) && isUnsafe(operation);

/** Whether another site could have a browser call it with the cookies of a session, unless that is prevented. */
export const needsCsrfToken = (operation: Operation): boolean =>
  operation.auth === 'web' && isUnsafe(operation);

/** Whether it changes what a user has. Ending sessions does not count: nobody is kept from shutting a thief out. */
export const changesUserData = (operation: Operation): boolean =>
  needsCsrfToken(operation) && operation.body !== undefined;

/** Whether its answer stays open for as long as something is to come. */
export const answersAsStream = ({ responseType }: Operation): boolean => responseType === 'text/event-stream';

/** Of those calls, how many an account, or a session, may have under way: more than programs in good faith open connections for. */
export const maxCallsPerAccount = 128;

/** What is read of a body where the operation sets no bound of its own. */
export const defaultBodyLimitBytes = 64_000;

/** What any request for a model's work can fail with. */
export const creationErrors = [
  'insufficient_balance',
  'model_not_found',
  'idempotency_conflict',
  'model_disabled',
  'content_too_long',
  'unsafe_url',
  'upstream_rejected',
  'rate_limit_exceeded',
  'too_many_jobs',
  'upstream_error',
  'queue_full',
  'upstream_timeout',
  'deadline_exceeded',
] as const satisfies readonly ErrorCode[];

/** Keeps an operation's exact schemas in its type, so that handlers get the types of what was validated. */
export function defineOperation<const T extends Operation>(operation: T): T {
  return operation;
}
