import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Database, RootDatabase } from 'lmdb';
import { open } from 'lmdb';
import { Collection } from './collection.ts';
import type { Doc } from '../bson/document.ts';
import { decodeDocument, encodeDocument } from '../bson/document.ts';
import { lockDirectory } from './lock-file.ts';
import { toNumber } from '../bson/numbers.ts';

type Table = Database<Buffer, Buffer>;

const options = { encoding: 'binary', keyEncoding: 'binary' } as const;

/**
 * Everything at rest, in one LMDB environment: documents, index entries, the catalog of collections and the answers of
 * retryable writes. A write command is one LMDB transaction, so that neither kill -9 nor a power cut can leave an
 * index out of step with its documents. Writes of concurrent commands share a transaction, and so a disk sync.
 *
 * Index entries are kept in LMDB and not rebuilt in memory because at 200 000 documents with three indexes a start
 * then takes 58 MB and no time instead of 217 MB and 1.9 s, while reading 300 documents costs 10 % more.
 */
export class Store {
  readonly documents: Table;
  readonly entries: Table;
  readonly sessions: Table;
  readonly collections = new Map<string, Collection>();
  readonly #catalog: Table;
  readonly #root: RootDatabase<Buffer, Buffer>;
  readonly #unlock: () => void;
  #afterCommit: (() => void)[] = [];
  #writing = Promise.resolve();

  constructor(dir: string, sync: boolean) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.#unlock = lockDirectory(dir);
    // Without overlappingSync a commit is on disk when its promise resolves.
    const path = join(dir, 'data.mdb');
    this.#root = open({
      path,
      noSubdir: true,
      maxDbs: 8,
      mapSize: 2 ** 38,
      overlappingSync: false,
      noSync: !sync,
    });
    this.documents = this.#root.openDB({ name: 'documents', ...options });
    this.entries = this.#root.openDB({ name: 'entries', ...options });
    this.sessions = this.#root.openDB({ name: 'sessions', ...options });
    this.#catalog = this.#root.openDB({ name: 'catalog', ...options });
    this.#loadCatalog();
  }

  /**
   * Runs a command's writes as one transaction and resolves when it is on disk. `action` is synchronous, sees its own
   * writes, and must check before it writes: what it wrote before it throws stays written.
   */
  async write<T>(action: () => T): Promise<T> {
    let outcome: { value: T } | { error: unknown } | undefined;
    let afterCommit: (() => void)[] = [];
    const committed = this.#root.transaction(() => {
      this.#afterCommit = [];
      try {
        outcome = { value: action() };
      } catch (error) {
        outcome = { error };
      }
      afterCommit = this.#afterCommit;
    });
    this.#writing = this.#writing.then(() => settle(committed));
    try {
      await committed;
    } catch (error) {
      // The disk may be full: nothing of the transaction is there, so what memory knows of it must go too.
      this.#loadCatalog();
      throw error;
    }
    this.#root.resetReadTxn();
    if (outcome === undefined) throw new Error('the transaction was committed without its action');
    if ('error' in outcome) throw outcome.error;
    for (const act of afterCommit) act();
    return outcome.value;
  }

  /** To be called inside `write`: what must not be seen before the transaction is on disk. */
  afterCommit(act: () => void): void {
    this.#afterCommit.push(act);
  }

  findCollection(db: string, name: string): Collection | undefined {
    return this.collections.get(`${db}.${name}`);
  }

  ensureCollection(db: string, name: string): Collection {
    const found = this.findCollection(db, name);
    if (found !== undefined) return found;
    const id = 1 + Math.max(0, ...Array.from(this.collections.values(), (collection) => collection.id));
    const collection = new Collection(this, { id, db, name });
    this.collections.set(collection.namespace, collection);
    this.saveCollection(collection);
    return collection;
  }

  dropCollection(collection: Collection): void {
    collection.clear();
    this.collections.delete(collection.namespace);
    this.#catalog.removeSync(catalogKey(collection.id));
  }

  saveCollection(collection: Collection): void {
    this.#catalog.putSync(catalogKey(collection.id), encodeDocument(collection.describe()));
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#root.close();
    this.#unlock();
  }

  #loadCatalog(): void {
    this.collections.clear();
    for (const { value } of this.#catalog.getRange({})) {
      const { id, db, name, indexes } = decodeDocument(value) as CatalogEntry;
      const collection = new Collection(this, { id: toNumber(id), db, name, indexes });
      this.collections.set(collection.namespace, collection);
    }
  }
}

type CatalogEntry = { id: unknown; db: string; name: string; indexes: Doc[] };

function catalogKey(id: number): Buffer {
  const key = Buffer.alloc(4);
  key.writeUInt32BE(id);
  return key;
}

async function settle(work: Promise<unknown>): Promise<void> {
  await Promise.allSettled([work]);
}
