// decision 0044
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Database, RootDatabase } from 'lmdb';
import { open } from 'lmdb';
import { releaseLockFile, takeLockFile } from '../../../processes/lock-file.ts';
import { identifyProcess } from '../../../processes/process-identity.ts';
import { Collection } from './collection.ts';
import type { Doc } from '../bson/document.ts';
import { decodeDocument, encodeDocument } from '../bson/document.ts';
import { MongoError } from '../errors.ts';
import { toNumber } from '../bson/numbers.ts';

type Table = Database<Buffer, Buffer>;

const options = { encoding: 'binary', keyEncoding: 'binary' } as const;

/** A command waiting for its transaction. */
type PendingWrite = {
  run(): void;
  onCommit(): void;
  onFailure(error: Error): void;
};

/**
 * All persistent data, in one LMDB environment: documents, index entries, the catalog of collections and the results of
 * retryable writes. A write command is one LMDB transaction, so that an index always matches its documents, even after
 * kill -9 or a power failure. Commands that arrive while a transaction is being written share the next transaction
 * and its disk sync. They run only once it is known whether the changes of earlier commands, which are already visible
 * in memory, are on disk.
 *
 * Index entries are stored in LMDB instead of being rebuilt in memory. With 200 000 documents and three indexes, a
 * start then takes 58 MB and no time instead of 217 MB and 1.9 s, while reading 300 documents takes 10 % longer.
 */
export class Store {
  readonly documents: Table;
  readonly entries: Table;
  readonly sessions: Table;
  readonly collections = new Map<string, Collection>();
  /** Number of documents written or removed since the start. */
  changes = 0;
  readonly #catalog: Table;
  readonly #root: RootDatabase<Buffer, Buffer>;
  readonly #lockPath: string;
  readonly #onBroken: (error: Error) => void;
  #afterCommit: (() => void)[] = [];
  #pending: PendingWrite[] = [];
  #writing: Promise<void> | null = null;

  /** @param onBroken called when nothing can be read or written until the process restarts */
  constructor(dir: string, sync: boolean, onBroken: (error: Error) => void) {
    this.#onBroken = onBroken;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.#lockPath = join(dir, 'lock');
    takeLockFile(
      this.#lockPath,
      identifyProcess(process.pid),
      ({ pid }) => new Error(`The embedded MongoDB in ${dir} is already in use by process ${pid}.`),
    );
    // Without overlappingSync, a commit is on disk when its promise resolves.
    const path = join(dir, 'data.mdb');
    this.#root = open({
      path,
      noSubdir: true,
      maxDbs: 8,
      mapSize: 2 ** 38,
      overlappingSync: false,
      // This class does the batching. LMDB's batching creates a promise that cannot be caught and is rejected if a
      // commit fails.
      eventTurnBatching: false,
      noSync: !sync,
    });
    this.documents = this.#root.openDB({ name: 'documents', ...options });
    this.entries = this.#root.openDB({ name: 'entries', ...options });
    this.sessions = this.#root.openDB({ name: 'sessions', ...options });
    this.#catalog = this.#root.openDB({ name: 'catalog', ...options });
    this.#loadCatalog();
  }

  /**
   * Runs a command's writes in a transaction and resolves when they are on disk. `action` is synchronous, sees its
   * own writes, and must check before it writes, because anything written before it throws remains written.
   * @throws MongoError `OutOfDiskSpace`; nothing is stored then
   */
  write<T>(action: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      let outcome: { value: T } | { error: unknown } | undefined;
      let afterCommit: (() => void)[] = [];
      this.#pending.push({
        run: () => {
          this.#afterCommit = [];
          try {
            outcome = { value: action() };
          } catch (error) {
            outcome = { error };
          }
          afterCommit = this.#afterCommit;
        },
        onCommit: () => {
          if (outcome === undefined) reject(new Error('the transaction was committed without its action'));
          else if ('error' in outcome) reject(outcome.error);
          else {
            for (const effect of afterCommit) effect();
            resolve(outcome.value);
          }
        },
        onFailure: reject,
      });
      this.#writing ??= this.#commitPending();
    });
  }

  async #commitPending(): Promise<void> {
    while (this.#pending.length > 0) {
      const writes = this.#pending;
      this.#pending = [];
      try {
        await this.#root.transaction(() => {
          for (const write of writes) write.run();
        });
        this.#root.resetReadTxn();
        for (const write of writes) write.onCommit();
      } catch (error) {
        const failure = await this.#discardFailed(error);
        for (const write of writes) write.onFailure(failure);
      }
    }
    this.#writing = null;
  }

  /** The disk may be full. The transaction was not stored, so the changes in memory must be discarded, too. */
  async #discardFailed(error: unknown): Promise<Error> {
    const reason = await readCommitError(error);
    try {
      this.#root.resetReadTxn();
      this.#loadCatalog();
    } catch (reloadError) {
      // LMDB could not write one of its two root pages and must be reopened.
      this.#onBroken(reloadError as Error);
    }
    return new MongoError('OutOfDiskSpace', `nothing was stored because the disk is full (${reason})`);
  }

  /** Call this inside `write`, for effects that must not be visible before the transaction is on disk. */
  afterCommit(effect: () => void): void {
    this.#afterCommit.push(effect);
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
    releaseLockFile(this.#lockPath);
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

/** LMDB reports why a commit failed through a separate promise. */
async function readCommitError(error: unknown): Promise<string> {
  const { commitError, message } = error as Error & { commitError?: Promise<never> };
  if (commitError === undefined) return message;
  try {
    return await commitError;
  } catch (cause) {
    return (cause as Error).message;
  }
}
