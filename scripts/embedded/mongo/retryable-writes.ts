import { Binary, Double, Long } from 'bson';
import type { Doc } from './bson/document.ts';
import { decodeDocument, encodeDocument, isObject } from './bson/document.ts';
import { MongoError } from './errors.ts';
import { toBigInt } from './bson/numbers.ts';
import type { Store } from './storage/store.ts';

const lifetimeMs = 30 * 60_000;

/**
 * The statements of a write. Each runs once per write number of a session: if it is sent again because its response was
 * lost, it does not run again and the saved result is returned. Results are stored in the same transaction as the data,
 * so a crash affects both or neither. For each session, only the results of one write are stored, for the lifetime of
 * sessions. Use this inside `Store.write`.
 */
export class RetryableStatements {
  readonly #store: Store;
  readonly #key: Buffer | null = null;
  readonly #number: Long | null = null;
  #results: Record<string, Doc> = {};

  /** @throws MongoError if the session has started a later write */
  constructor(store: Store, { lsid, txnNumber }: Doc) {
    this.#store = store;
    if (txnNumber === undefined) return;
    if (!isObject(lsid) || !(lsid.id instanceof Binary) || !(txnNumber instanceof Long)) {
      throw new MongoError('InvalidOptions', 'a transaction number needs a session');
    }
    this.#key = Buffer.from(lsid.id.buffer.subarray(0, lsid.id.position));
    this.#number = txnNumber;
    const saved = store.sessions.getBinary(this.#key);
    if (saved === undefined) return;
    const { number, results } = decodeDocument(saved) as SavedWrite;
    if (toBigInt(number) > toBigInt(txnNumber)) {
      const message = `transaction ${txnNumber.toString()} of the session is too old: ${number.toString()} has already started`;
      throw new MongoError('TransactionTooOld', message);
    }
    if (number.equals(txnNumber)) this.#results = results ?? {};
  }

  /**
   * Runs a statement unless it was done before. Like MongoDB, does not save the results of statements that changed
   * nothing.
   */
  once(index: number, run: () => Doc): { result: Doc; isRepeated: boolean } {
    const known = this.#results[String(index)];
    if (known !== undefined) return { result: known, isRepeated: true };
    const changesBefore = this.#store.changes;
    const result = run();
    if (this.#store.changes > changesBefore) this.#results[String(index)] = result;
    return { result, isRepeated: false };
  }

  save(): void {
    if (this.#key === null) return;
    const write = { number: this.#number, at: new Double(Date.now()), results: this.#results };
    this.#store.sessions.putSync(this.#key, encodeDocument(write));
  }
}

/** Deletes the results of sessions that have ended. Call this inside `Store.write`. */
export function deleteOldResults(store: Store): void {
  for (const { key, value } of Array.from(store.sessions.getRange({}))) {
    const { at } = decodeDocument(value) as SavedWrite;
    if (Date.now() - at.value > lifetimeMs) store.sessions.removeSync(key);
  }
}

type SavedWrite = { number: Long; at: Double; results?: Record<string, Doc> };
