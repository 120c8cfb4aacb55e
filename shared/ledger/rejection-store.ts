// decision 0105
import type { ErrorCode } from '../contract/error-kinds.ts';
import { insertMissing } from '../platform/storage/insert-missing.ts';
import { callMongo, type Collection, type Database } from '../platform/storage/mongo-client.ts';
import type { RequestLogDocument } from './ledger-store.ts';
import { nothingUsed } from './usage-event.ts';
import { logLifetimeSeconds, requestListIndexes } from './request-log-indexes-store.ts';

/** What is known of a request that was rejected before a model was called. */
export interface Rejection {
  /** Its `x-request-id`. */
  readonly requestId: string;
  readonly accountId: string;
  /** The catalog's id of the model; empty if the request names none that the catalog has. */
  readonly model: string;
  /** When it was received. */
  readonly at: Date;
  readonly durationMs: number;
  readonly status: number;
  readonly code: ErrorCode;
  /** What the caller was told, in English. */
  readonly message: string;
  readonly address: string;
}

/**
 * Rejected requests, in MongoDB, for 72 hours. They are rows like those of the request log, so that the same lists have both,
 * but no part of it: nothing was charged, and they are in no sum.
 */
export class RejectionStore {
  readonly rows: Collection<RequestLogDocument>;

  constructor(db: Database) {
    this.rows = db.collection('rejected_requests');
  }

  async createIndexes(): Promise<void> {
    const { byAccount, byAccountAndModel, byModel, all } = requestListIndexes;
    for (const fields of [byAccount, byAccountAndModel, byModel, all]) await this.rows.createIndex(fields);
    await this.rows.createIndex({ settledAt: 1 }, { expireAfterSeconds: logLifetimeSeconds });
  }

  async insert(rejections: readonly Rejection[]): Promise<void> {
    await callMongo(() => insertMissing(this.rows, rejections.map(toRow)));
  }
}

const toRow = (rejection: Rejection): RequestLogDocument => {
  const { requestId, accountId, model, at, durationMs, status, code, message, address } = rejection;
  return {
    _id: requestId,
    accountId,
    model,
    at,
    settledAt: new Date(at.getTime() + durationMs),
    ordinal: 0,
    durationMs,
    success: false,
    isRejected: true,
    responseCode: status,
    errorCode: code,
    details: message,
    userIp: address,
    ...nothingUsed,
    priceVersion: '',
    user: null,
    costNano: 0n,
    shortfallNano: 0n,
    free: false,
  };
};
