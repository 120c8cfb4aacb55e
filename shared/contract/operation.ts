import type { TSchema } from 'typebox';
import type { ErrorCode } from './errors.ts';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** Chapters of the description, in its order. */
export const tags = ['Chat', 'Images', 'Embeddings', 'Models', 'Users', 'System'] as const;
export type Tag = (typeof tags)[number];

/** One operation of the API: what the router serves, the validator checks and the description tells. */
export interface Operation {
  readonly operationId: string;
  readonly tag: Tag;
  readonly summary: string;
  /** What the summary leaves open, in Markdown. */
  readonly description?: string;
  readonly method: Method;
  /** Below the version segment, in OpenAPI's form: `/models/{model_id}`. */
  readonly path: string;
  /** The path has no version segment in front. */
  readonly atRoot?: true;
  readonly auth: 'key' | 'none' | 'web';
  /** The largest body that is read; a longer one is a 413. Without a body schema no body is read. */
  readonly bodyLimitBytes?: number;
  readonly query?: TSchema;
  readonly body?: TSchema;
  readonly response: TSchema;
  /** Of the answer of success, where it is not JSON. */
  readonly responseType?: string;
  /** Status of success. */
  readonly status?: number;
  /** What it can fail with, beside what its authentication, query and body already tell. */
  readonly errors: readonly ErrorCode[];
}

/** What any request for a model's work can fail with. */
export const creationErrors = [
  'model_not_found',
  'model_disabled',
  'content_too_long',
  'insufficient_balance',
  'rate_limit_exceeded',
  'upstream_rejected',
  'upstream_error',
  'upstream_timeout',
  'queue_full',
  'deadline_exceeded',
] as const satisfies readonly ErrorCode[];

/** Keeps an operation's exact schemas in its type, so that handlers get the types of what was validated. */
export function defineOperation<const T extends Operation>(operation: T): T {
  return operation;
}
