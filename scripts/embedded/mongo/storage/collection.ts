import { Int32 } from 'bson';
import { checkStored } from '../bson/check-stored.ts';
import type { Doc } from '../bson/document.ts';
import { decodeDocument, encodeDocument, maxDocumentBytes } from '../bson/document.ts';
import { MongoError } from '../errors.ts';
import type { IndexSpec } from './indexes.ts';
import { Index, maxEntryBytes, readRecordId } from './indexes.ts';
import { toNumber } from '../bson/numbers.ts';
import type { Store } from './store.ts';

/** A stored document. Decoded only when its fields are needed. */
export class StoredDocument {
  readonly recordId: number;
  readonly raw: Buffer;
  #document: Doc | undefined;

  constructor(recordId: number, raw: Buffer) {
    this.recordId = recordId;
    this.raw = raw;
  }

  get document(): Doc {
    this.#document ??= decodeDocument(this.raw);
    return this.#document;
  }
}

/** Bounds of index entries. The upper one is exclusive. */
export type KeyRange = { start: Buffer; end: Buffer };

/**
 * Shortens a range to keys that LMDB accepts. Truncating a bound that is longer than any entry does not change which
 * entries the range contains.
 */
function shortenRange({ start, end }: KeyRange): KeyRange {
  return { start: start.subarray(0, maxEntryBytes), end: end.subarray(0, maxEntryBytes) };
}

type CollectionRecord = { id: number; db: string; name: string; indexes?: Doc[] };

const firstChunkSize = 64;
const maxChunkSize = 2048;

/** The documents of one collection with their index entries. Written only inside `Store.write`. */
export class Collection {
  readonly id: number;
  readonly db: string;
  readonly name: string;
  readonly indexes: Index[];
  isDropped = false;
  readonly #store: Store;
  #nextRecordId: number | undefined;
  #count: number | undefined;

  constructor(store: Store, { id, db, name, indexes }: CollectionRecord) {
    this.id = id;
    this.db = db;
    this.name = name;
    this.#store = store;
    this.indexes = (indexes ?? [{ id: 1, spec: { key: { _id: new Int32(1) }, name: '_id_' } }]).map(
      ({ id, spec }) => new Index(indexes === undefined ? this.#indexId(0) : toNumber(id), spec as IndexSpec),
    );
    for (const index of this.indexes) index.isReady = true;
  }

  get namespace(): string {
    return `${this.db}.${this.name}`;
  }

  describe(): Doc {
    const indexes = this.indexes.map(({ id, spec }) => ({ id, spec }));
    return { id: this.id, db: this.db, name: this.name, indexes };
  }

  countDocuments(): number {
    this.#count ??= this.#store.documents.getKeysCount(this.#documentRange());
    return this.#count;
  }

  insert(document: Doc, raw: Buffer): void {
    this.#nextRecordId ??= this.#findNextRecordId();
    const count = this.countDocuments();
    this.#write(this.#nextRecordId, undefined, { document, raw });
    this.#nextRecordId += 1;
    this.#count = count + 1;
  }

  /** @returns false if the new document equals the old one byte for byte */
  replace(stored: StoredDocument, document: Doc): boolean {
    const raw = encodeDocument(document);
    if (raw.equals(stored.raw)) return false;
    this.#write(stored.recordId, stored.document, { document, raw });
    return true;
  }

  remove(stored: StoredDocument): void {
    const count = this.countDocuments();
    this.#write(stored.recordId, stored.document, undefined);
    this.#count = count - 1;
  }

  read(recordId: number): StoredDocument | undefined {
    const raw = this.#store.documents.getBinary(this.#documentKey(recordId));
    return raw === undefined ? undefined : new StoredDocument(recordId, raw);
  }

  /** Yields all documents in insertion order. Reads in chunks, and so includes what is written between two chunks. */
  *scan(): Generator<StoredDocument> {
    const { start, end } = this.#documentRange();
    const read = (from: Buffer, exclusiveStart: boolean, limit: number) =>
      Array.from(this.#store.documents.getRange({ start: from, end, exclusiveStart, limit }));
    for (const { key, value } of this.#inChunks(start, read, ({ key }) => key)) {
      yield new StoredDocument(readRecordId(key), value);
    }
  }

  /** Yields the record ids of the documents in the range, in the order of their keys or in reverse. */
  *scanEntries(requested: KeyRange, isReverse: boolean): Generator<number> {
    const range = shortenRange(requested);
    const [from, end] = isReverse ? [range.end, range.start] : [range.start, range.end];
    const read = (start: Buffer, exclusiveStart: boolean, limit: number) =>
      Array.from(this.#store.entries.getKeys({ start, end, exclusiveStart, reverse: isReverse, limit }));
    for (const key of this.#inChunks(from, read, (key) => key)) yield readRecordId(key);
  }

  countEntries(range: KeyRange): number {
    return this.#store.entries.getKeysCount(shortenRange(range));
  }

  createIndex(spec: IndexSpec): void {
    const usedIds = new Set(this.indexes.map((index) => index.id));
    let number = 1;
    while (usedIds.has(this.#indexId(number))) number += 1;
    const index = new Index(this.#indexId(number), spec);
    try {
      for (const { recordId, document } of this.scan()) {
        const key = index.keyOf(document);
        if (key === undefined) continue;
        if (this.#isUsedByOther(index, key, recordId)) throw index.duplicateError(this.namespace, document);
        this.#store.entries.putSync(index.entryKey(key, recordId), Buffer.alloc(0));
      }
    } catch (error) {
      this.#removeEntries(index);
      throw error;
    }
    this.indexes.push(index);
    this.#store.saveCollection(this);
    this.#store.afterCommit(() => {
      index.isReady = true;
    });
  }

  /** Changes when the documents of a TTL index expire. The rest of the specification must be the same. */
  changeExpiry(index: Index, { expireAfterSeconds }: IndexSpec): void {
    index.spec.expireAfterSeconds = expireAfterSeconds;
    this.#store.saveCollection(this);
  }

  /** Removes every document and index entry when the collection is dropped. */
  clear(): void {
    this.isDropped = true;
    for (const index of this.indexes) this.#removeEntries(index);
    for (const key of Array.from(this.#store.documents.getKeys(this.#documentRange()))) {
      this.#store.documents.removeSync(key);
    }
  }

  /** All changes to documents happen here. Everything that can fail is checked before the first byte is written. */
  #write(recordId: number, before: Doc | undefined, after: { document: Doc; raw: Buffer } | undefined): void {
    if (after !== undefined && after.raw.length > maxDocumentBytes) {
      const message = `BSONObj size: ${after.raw.length} is invalid. Size must be between 0 and ${maxDocumentBytes}`;
      throw new MongoError('BSONObjectTooLarge', message);
    }
    if (after !== undefined) checkStored(after.document);
    const changes = this.indexes.flatMap((index) => {
      const removed = before && index.keyOf(before);
      const added = after && index.keyOf(after.document);
      const isSame = removed !== undefined && added?.equals(removed) === true;
      return isSame ? [] : [{ index, removed, added }];
    });
    for (const { index, added } of changes) {
      if (after !== undefined && added !== undefined && this.#isUsedByOther(index, added, recordId)) {
        throw index.duplicateError(this.namespace, after.document);
      }
    }
    this.#store.changes += 1;
    const { documents, entries } = this.#store;
    for (const { index, removed, added } of changes) {
      if (removed !== undefined) entries.removeSync(index.entryKey(removed, recordId));
      if (added !== undefined) entries.putSync(index.entryKey(added, recordId), Buffer.alloc(0));
    }
    if (after === undefined) documents.removeSync(this.#documentKey(recordId));
    else documents.putSync(this.#documentKey(recordId), after.raw);
  }

  #isUsedByOther(index: Index, key: Buffer, recordId: number): boolean {
    if (!index.isUnique) return false;
    const start = Buffer.concat([index.prefix(), key]);
    const end = Buffer.concat([start, Buffer.from([0xff])]);
    for (const entry of this.#store.entries.getKeys({ start, end, limit: 2 })) {
      if (readRecordId(entry) !== recordId) return true;
    }
    return false;
  }

  #removeEntries(index: Index): void {
    const end = Buffer.concat([index.prefix(), Buffer.from([0xff])]);
    for (const key of Array.from(this.#store.entries.getKeys({ start: index.prefix(), end }))) {
      this.#store.entries.removeSync(key);
    }
  }

  /** Reads a range in chunks, each starting after the last, so that no LMDB cursor stays open between two commands. */
  *#inChunks<T>(
    start: Buffer,
    read: (start: Buffer, exclusiveStart: boolean, limit: number) => T[],
    keyOf: (item: T) => Buffer,
  ): Generator<T> {
    let limit = firstChunkSize;
    let from: Buffer | undefined;
    for (;;) {
      if (this.isDropped) throw new MongoError('QueryPlanKilled', `collection dropped: ${this.namespace}`);
      const items = read(from ?? start, from !== undefined, limit);
      yield* items;
      const last = items.at(-1);
      if (last === undefined || items.length < limit) return;
      from = keyOf(last);
      limit = Math.min(limit * 2, maxChunkSize);
    }
  }

  #findNextRecordId(): number {
    const { start, end } = this.#documentRange();
    const [last] = this.#store.documents.getKeys({ start: end, end: start, reverse: true, limit: 1 });
    return last === undefined ? 1 : readRecordId(last) + 1;
  }

  /**
   * Returns a store-wide index id: the collection's id combined with a number below 64, which is MongoDB's maximum
   * number of indexes.
   */
  #indexId(number: number): number {
    if (number >= 64) throw new MongoError('CannotCreateIndex', 'a collection has at most 64 indexes');
    return this.id * 64 + number;
  }

  #documentKey(recordId: number): Buffer {
    const key = Buffer.alloc(10);
    key.writeUInt32BE(this.id);
    key.writeUIntBE(recordId, 4, 6);
    return key;
  }

  #documentRange(): KeyRange {
    return { start: this.#documentKey(0), end: this.#documentKey(2 ** 48 - 1) };
  }
}
