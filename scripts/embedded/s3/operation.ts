import type { ReadStream } from 'node:fs';
import type { BucketStore } from './bucket-store.ts';
import type { S3Request } from './parse-request.ts';
import type { Payload } from './payload.ts';

/** An authenticated request and what its operation may use. */
export interface OperationContext {
  request: S3Request;
  /** The request's headers. For a presigned request, also the x-amz headers from its query. */
  headers: ReadonlyMap<string, string>;
  store: BucketStore;
  nowMs: number;
  /** Announces that a body of at most `maxBytes` is wanted. Must be called at most once. */
  openPayload: (maxBytes: number) => Payload;
  maxObjectBytes: number;
}

export interface S3Response {
  status: number;
  headers?: Readonly<Record<string, string>> | undefined;
  body?: string | { stream: ReadStream } | undefined;
}

export type Operation = (context: OperationContext) => Promise<S3Response>;
