import { Long } from 'bson';
import type { Doc } from './bson/document.ts';
import { encodeDocument, maxDocumentBytes } from './bson/document.ts';
import { MongoError } from './errors.ts';
import { encodeCursorReply } from './wire.ts';

type Cursor = {
  namespace: string;
  remaining: Iterator<Buffer>;
  nextDocument: Buffer | undefined;
  usedAt: number;
};

const idleTimeoutMs = 10 * 60_000;
const firstBatchSize = 101;

/** Results that clients have not fetched completely yet. */
export class Cursors {
  readonly #open = new Map<bigint, Cursor>();
  #lastId = 0n;

  /** Builds the reply to a command that returns documents: the first batch, and a cursor if there are more. */
  open(
    namespace: string,
    documents: Iterable<Buffer>,
    {
      batchSize = firstBatchSize,
      singleBatch = false,
    }: { batchSize?: number | undefined; singleBatch?: boolean } = {},
  ): Buffer {
    const cursor = {
      namespace,
      remaining: documents[Symbol.iterator](),
      nextDocument: undefined,
      usedAt: Date.now(),
    };
    const { batch, isDone } = takeBatch(cursor, batchSize);
    let id = 0n;
    if (!isDone && !singleBatch) {
      this.#lastId += 1n;
      id = this.#lastId;
      this.#open.set(id, cursor);
    }
    return encodeCursorReply('firstBatch', batch, id, namespace);
  }

  openDocuments(
    namespace: string,
    documents: Iterable<Doc>,
    options?: { batchSize?: number | undefined },
  ): Buffer {
    return this.open(namespace, encodeAll(documents), options);
  }

  getMore(id: bigint, namespace: string, batchSize = Infinity): Buffer {
    const cursor = this.#open.get(id);
    if (cursor === undefined) throw new MongoError('CursorNotFound', `cursor id ${id} not found`);
    if (cursor.namespace !== namespace) {
      throw new MongoError(
        'Unauthorized',
        `cursor id ${id} belongs to '${cursor.namespace}', not to '${namespace}'`,
      );
    }
    cursor.usedAt = Date.now();
    const { batch, isDone } = takeBatch(cursor, batchSize);
    if (isDone) this.#open.delete(id);
    return encodeCursorReply('nextBatch', batch, isDone ? 0n : id, namespace);
  }

  kill(ids: bigint[]): { killed: Long[]; notFound: Long[] } {
    const killed: Long[] = [];
    const notFound: Long[] = [];
    for (const id of ids) (this.#open.delete(id) ? killed : notFound).push(Long.fromBigInt(id));
    return { killed, notFound };
  }

  closeIdle(): void {
    for (const [id, { usedAt }] of this.#open) if (Date.now() - usedAt > idleTimeoutMs) this.#open.delete(id);
  }
}

/**
 * Takes as many documents as fit in a batch by number and size. Reads one ahead to determine whether there are more.
 */
function takeBatch(cursor: Cursor, batchSize: number): { batch: Buffer[]; isDone: boolean } {
  const batch: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    if (cursor.nextDocument === undefined) {
      const next = cursor.remaining.next();
      if (next.done === true) return { batch, isDone: true };
      cursor.nextDocument = next.value;
    }
    const isFull = batch.length > 0 && bytes + cursor.nextDocument.length > maxDocumentBytes;
    if (isFull || batch.length >= batchSize) return { batch, isDone: false };
    batch.push(cursor.nextDocument);
    bytes += cursor.nextDocument.length;
    cursor.nextDocument = undefined;
  }
}

export function* encodeAll(documents: Iterable<Doc>): Generator<Buffer> {
  for (const document of documents) {
    const raw = encodeDocument(document);
    if (raw.length > maxDocumentBytes) throw new MongoError('BSONObjectTooLarge', 'a result exceeds 16 MB');
    yield raw;
  }
}
