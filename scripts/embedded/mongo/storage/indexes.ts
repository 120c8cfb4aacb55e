import { ObjectId } from 'bson';
import type { Doc } from '../bson/document.ts';
import { isObject } from '../bson/document.ts';
import { MongoError, unsupported } from '../errors.ts';
import { KeyWriter } from '../bson/key-writer.ts';
import type { Predicate } from '../query/match.ts';
import { compileFilter } from '../query/match.ts';
import { isNumber, toNumber } from '../bson/numbers.ts';
import { getSingleAt, parsePath } from '../bson/paths.ts';
import type { SortField } from '../query/sort.ts';

/** An index as clients define and list it. `v` is added when it is listed. */
export type IndexSpec = {
  name: string;
  key: Doc;
  unique?: boolean;
  expireAfterSeconds?: unknown;
  partialFilterExpression?: Doc;
};

const recordIdBytes = 6;
/** LMDB's limit for a key. The index id and the record id take 10 bytes of an entry. */
export const maxEntryBytes = 1978;
const maxKeyBytes = maxEntryBytes - 10;
const specFields = ['v', 'key', 'name', 'unique', 'expireAfterSeconds', 'partialFilterExpression'];

/** Computes the key under which one index stores each document. */
export class Index {
  readonly id: number;
  readonly spec: IndexSpec;
  readonly fields: SortField[];
  /** Whether its entries are on disk. Until then, documents are added but no query may use the index. */
  isReady = false;
  readonly #covers: Predicate | undefined;

  constructor(id: number, spec: IndexSpec) {
    this.id = id;
    this.spec = spec;
    this.fields = Object.entries(spec.key).map(([path, direction]) => ({
      path,
      parts: parsePath(path),
      direction: toNumber(direction) < 0 ? -1 : 1,
    }));
    if (spec.partialFilterExpression !== undefined)
      this.#covers = compileFilter(spec.partialFilterExpression);
  }

  get isUnique(): boolean {
    return this.spec.unique === true || this.spec.name === '_id_';
  }

  /**
   * Returns a document's key without the index id and the record id, or `undefined` if the index does not include the
   * document.
   */
  keyOf(document: Doc): Buffer | undefined {
    if (this.#covers?.(document) === false) return undefined;
    const key = this.#encode(this.fields.map(({ parts }) => getSingleAt(document, parts, 'indexing')));
    if (key.length > maxKeyBytes) throw unsupported(`an index key of ${key.length} bytes`, 'KeyTooLong');
    return key;
  }

  /** Encodes the values of the index's fields. */
  #encode(values: unknown[]): Buffer {
    const writer = new KeyWriter();
    for (const [i, value] of values.entries()) {
      const start = writer.length;
      writer.writeValue(value);
      if (this.fields[i]!.direction < 0) writer.invertFrom(start);
    }
    return writer.toBuffer();
  }

  /** Builds an index entry: the index id, the key and the record id. */
  entryKey(key: Buffer, recordId: number): Buffer {
    const idBytes = Buffer.alloc(recordIdBytes);
    idBytes.writeUIntBE(recordId, 0, recordIdBytes);
    return Buffer.concat([this.prefix(), key, idBytes]);
  }

  prefix(): Buffer {
    const prefix = Buffer.alloc(4);
    prefix.writeUInt32BE(this.id);
    return prefix;
  }

  duplicateError(namespace: string, document: Doc): MongoError {
    const keyValue = Object.fromEntries(
      this.fields.map(({ path, parts }) => [path, getSingleAt(document, parts, 'indexing') ?? null]),
    );
    const shown = Object.entries(keyValue).map(([path, value]) => `${path}: ${showValue(value)}`);
    return new MongoError(
      'DuplicateKey',
      `E11000 duplicate key error collection: ${namespace} index: ${this.spec.name} dup key: { ${shown.join(', ')} }`,
      { keyPattern: this.spec.key, keyValue },
    );
  }
}

export function readRecordId(entryKey: Buffer): number {
  return entryKey.readUIntBE(entryKey.length - recordIdBytes, recordIdBytes);
}

function showValue(value: unknown): string {
  if (value instanceof ObjectId) return `ObjectId('${value.toHexString()}')`;
  return value instanceof Date ? `new Date(${value.getTime()})` : JSON.stringify(value);
}

/** Checks a client's index specification and rejects every kind of index and option that is not supported here. */
export function parseIndexSpec(spec: Doc): IndexSpec {
  const { key, name, unique, expireAfterSeconds, partialFilterExpression } = spec;
  const cannot = (message: string) => new MongoError('CannotCreateIndex', message);
  if (!isObject(key) || Object.keys(key).length === 0) throw cannot('Index keys cannot be empty.');
  if (typeof name !== 'string' || name === '') throw cannot('An index needs a name.');
  for (const [path, direction] of Object.entries(key)) {
    parsePath(path, 'CannotCreateIndex');
    if (Math.abs(toNumber(direction)) !== 1)
      throw unsupported(`an index of type ${JSON.stringify(direction)}`, 'CannotCreateIndex');
  }
  const unknown = Object.keys(spec).find((option) => !specFields.includes(option));
  if (unknown !== undefined) throw unsupported(`the index option ${unknown}`, 'CannotCreateIndex');
  if (unique !== undefined && typeof unique !== 'boolean')
    throw new MongoError('TypeMismatch', "The index option 'unique' must be a boolean");
  if (expireAfterSeconds !== undefined) {
    const seconds = isNumber(expireAfterSeconds) ? toNumber(expireAfterSeconds) : NaN;
    if (!(seconds >= 0 && seconds < 2 ** 31))
      throw cannot('expireAfterSeconds must be a number from 0 to 2^31');
    if (Object.keys(key).length > 1 || Object.hasOwn(key, '_id'))
      throw cannot('TTL indexes are single-field indexes');
    if (partialFilterExpression !== undefined) throw unsupported('a partial TTL index', 'CannotCreateIndex');
  }
  return {
    key,
    name,
    ...(unique === true && { unique }),
    ...(partialFilterExpression !== undefined && {
      partialFilterExpression: parsePartialFilter(partialFilterExpression),
    }),
    ...(expireAfterSeconds !== undefined && { expireAfterSeconds }),
  };
}

/** Supports only some of MongoDB's filters: fields that equal a string, a number or a boolean. */
function parsePartialFilter(filter: unknown): Doc {
  if (!isObject(filter))
    throw new MongoError('TypeMismatch', "The index option 'partialFilterExpression' must be an object");
  for (const [path, value] of Object.entries(filter)) {
    parsePath(path, 'CannotCreateIndex');
    if (!isNumber(value) && typeof value !== 'string' && typeof value !== 'boolean')
      throw unsupported(
        `${path}: ${JSON.stringify(value)} in a partialFilterExpression`,
        'CannotCreateIndex',
      );
  }
  return filter;
}
