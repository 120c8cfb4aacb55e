import type { Pricing } from '../contract/models.ts';

/** The data that settlement needs about a request. Every job carries it. */
export interface AdmittedRequest {
  readonly requestId: string;
  readonly accountId: string;
  /** The model's public id. */
  readonly model: string;
  /** The price at admission. A reloaded catalog does not affect running work. */
  readonly pricing: Pricing;
  readonly priceVersion: string;
  readonly admittedAtMs: number;
  /** Work that has not started by then is dropped. */
  readonly deadlineAtMs: number;
  readonly userIp: string;
  /** Our own estimate, used if the vendor does not report the usage. */
  readonly promptTokens: number;
  readonly user: string | null;
  /**
   * Hash of the request's Idempotency-Key, and thus the id of its idempotency claim; null if the caller sent no key.
   * With a key, the response stays stored after the connection ends, so that a retry with the same key gets it.
   */
  readonly claimHash: string | null;
  /** Set for a stream that continues without its reader. It stays stored for a while, so that it can be resumed. */
  readonly isResumable?: true;
  /** Set by an api process that reads `facts` frames. Those of release 0.1.0 would exit at one. */
  readonly wantsFacts?: true;
  /** For a durable job that a worker has taken: the number of this attempt. Absent in all other requests. */
  readonly jobAttempt?: number;
  /** For a durable job: whether it reserves a free request instead of money. */
  readonly isFree?: boolean;
  /** The `traceparent` of its span in the api process, if it is traced. */
  readonly trace?: string;
}

/** Whether a request's response stays stored after its connection ends. */
export const isResponseStored = ({
  claimHash,
  isResumable,
  jobAttempt,
}: Pick<AdmittedRequest, 'claimHash' | 'isResumable' | 'jobAttempt'>): boolean =>
  claimHash !== null || isResumable === true || jobAttempt !== undefined;
