import type { ReadStream } from 'node:fs';
import type { BucketStore } from './bucket-store.ts';
import type { S3Request } from './parse-request.ts';
import type { Payload } from './payload.ts';

/** An authenticated request and the means to serve it. */
export interface OperationContext {
  request: S3Request;
  /** The request's headers. For a presigned request, also the x-amz headers from its query. */
  headers: ReadonlyMap<string, string>;
  store: BucketStore;
  nowMs: number;
  /**
   * Opens the body, which may have at most `maxBytes`. Must be called at most once. Its checksum headers describe the
   * body unless `headers` says otherwise.
   */
  openPayload: (maxBytes: number, headers?: ReadonlyMap<string, string>) => Payload;
  maxObjectBytes: number;
  /** Aborted when the server stops. Work that takes long and no longer has a client ends then. */
  stopping: AbortSignal;
}

/** For a document that may take long. Meanwhile the client gets white space. */
export interface LateBody {
  later: () => Promise<string>;
}

export interface S3Response {
  status: number;
  headers?: Readonly<Record<string, string>> | undefined;
  body?: string | { stream: ReadStream } | LateBody | undefined;
}

export type Operation = (context: OperationContext) => Promise<S3Response>;
