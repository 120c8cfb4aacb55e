import type { TSchema } from 'typebox';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** One operation of the API: what the router serves, the validator checks and the description tells. */
export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly method: Method;
  /** Below the version segment, in OpenAPI's form: `/models/{model_id}`. */
  readonly path: string;
  readonly auth: 'key' | 'none' | 'web';
  /** The largest body that is read; a longer one is a 413. Without a body schema no body is read. */
  readonly bodyLimitBytes?: number;
  readonly query?: TSchema;
  readonly body?: TSchema;
  readonly response: TSchema;
  /** Status of success. */
  readonly status?: number;
}

/** Keeps an operation's exact schemas in its type, so that handlers get the types of what was validated. */
export function defineOperation<const T extends Operation>(operation: T): T {
  return operation;
}
