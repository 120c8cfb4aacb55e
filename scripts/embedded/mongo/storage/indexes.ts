import { ObjectId } from 'bson';
import type { Doc } from '../bson/document.ts';
import { isObject } from '../bson/document.ts';
import { MongoError, refuse } from '../errors.ts';
import { KeyWriter } from '../bson/key-writer.ts';
import type { Predicate } from '../query/match.ts';
import { compileFilter } from '../query/match.ts';
import { isNumber, toNumber } from '../bson/numbers.ts';
import { collectAt } from '../bson/paths.ts';
import type { SortField } from '../query/sort.ts';

/** As clients state and list it; `v` is added when it is listed. */
export type IndexSpec = {
  name: string;
  key: Doc;
  unique?: boolean;
  sparse?: boolean;
  expireAfterSeconds?: unknown;
  partialFilterExpression?: Doc;
};

export type DocumentKeys = { keys: Map<string, Buffer>; hasArray: boolean };

export const noKeys: DocumentKeys = { keys: new Map(), hasArray: false };

const recordIdBytes = 6;
/** LMDB's limit for a key; 10 bytes of an entry are the numbers of the index and of the document. */
export const maxEntryBytes = 1978;
const maxKeyBytes = maxEntryBytes - 10;
const specFields = new Set([
  'v',
  'key',
  'name',
  'unique',
  'sparse',
  'expireAfterSeconds',
  'partialFilterExpression',
]);
const partialOperators = new Set(['$eq', '$exists', '$gt', '$gte', '$lt', '$lte', '$type', '$and', '$in']);

/** What one index makes of documents: the keys under which each is entered. */
export class Index {
  readonly id: number;
  readonly spec: IndexSpec;
  readonly fields: SortField[];
  /** Some document had an array in a field, so several keys. From then on no order and only one bound can be used. */
  isMultikey: boolean;
  /** Its entries are on disk. Before that documents are entered, but no query may use it. */
  isReady = false;
  readonly #covers: Predicate | undefined;

  constructor(id: number, spec: IndexSpec, isMultikey = false) {
    this.id = id;
    this.spec = spec;
    this.isMultikey = isMultikey;
    this.fields = Object.entries(spec.key).map(([path, direction]) => ({
      path,
      parts: path.split('.'),
      direction: toNumber(direction) < 0 ? -1 : 1,
    }));
    if (spec.partialFilterExpression !== undefined)
      this.#covers = compileFilter(spec.partialFilterExpression);
  }

  get isUnique(): boolean {
    return this.spec.unique === true || this.spec.name === '_id_';
  }

  /** The keys of a document, without the numbers of index and document; one for each element where there is an array. */
  keysOf(document: Doc): DocumentKeys {
    const keys = new Map<string, Buffer>();
    if (this.#covers?.(document) === false) return { keys, hasArray: false };
    const fields = this.fields.map(({ parts }) => collectAt(document, parts));
    if (
      this.spec.sparse === true &&
      fields.every(({ values }) => values.every((value) => value === undefined))
    ) {
      return { keys, hasArray: false };
    }
    const arrays = fields.filter(({ isArray }) => isArray);
    if (arrays.length > 1) throw refuse('indexing several array fields at once', 'CannotIndexParallelArrays');
    for (const element of arrays[0]?.values ?? [undefined]) {
      const key = this.encode(fields.map(({ values, isArray }) => (isArray ? element : values[0])));
      if (key.length > maxKeyBytes) throw refuse(`an index key of ${key.length} bytes`, 'KeyTooLong');
      keys.set(key.toString('latin1'), key);
    }
    return { keys, hasArray: arrays.length > 0 };
  }

  /** The bytes of values for the index's first fields. */
  encode(values: unknown[]): Buffer {
    const writer = new KeyWriter();
    for (const [i, value] of values.entries()) {
      const start = writer.length;
      writer.writeValue(value);
      if (this.fields[i]!.direction < 0) writer.invertFrom(start);
    }
    return writer.toBuffer();
  }

  /** An entry of the index in the store: numbers of index and document around the key. */
  entryKey(key: Buffer, recordId: number): Buffer {
    const number = Buffer.alloc(recordIdBytes);
    number.writeUIntBE(recordId, 0, recordIdBytes);
    return Buffer.concat([this.prefix(), key, number]);
  }

  prefix(): Buffer {
    const prefix = Buffer.alloc(4);
    prefix.writeUInt32BE(this.id);
    return prefix;
  }

  duplicateError(namespace: string, document: Doc): MongoError {
    const keyValue = Object.fromEntries(
      this.fields.map(({ path, parts }) => [path, collectAt(document, parts).values[0] ?? null]),
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

/** Checks what a client asks for and refuses every kind of index and option that is not kept here. */
export function parseIndexSpec(spec: Doc): IndexSpec {
  const { key, name, unique, sparse, expireAfterSeconds, partialFilterExpression } = spec;
  const cannot = (message: string) => new MongoError('CannotCreateIndex', message);
  if (!isObject(key) || Object.keys(key).length === 0) throw cannot('Index keys cannot be empty.');
  if (typeof name !== 'string' || name === '') throw cannot('An index needs a name.');
  for (const [path, direction] of Object.entries(key)) {
    if (!isNumber(direction))
      throw refuse(`an index of type ${JSON.stringify(direction)}`, 'CannotCreateIndex');
    if (!(Math.abs(toNumber(direction)) > 0)) throw cannot('Values in the index key pattern cannot be 0.');
    if (path.split('.').some((part) => part === '' || part.startsWith('$'))) {
      throw refuse(`an index on '${path}'`, 'CannotCreateIndex');
    }
  }
  const unknown = Object.keys(spec).find((option) => !specFields.has(option) && option !== 'background');
  if (unknown !== undefined) throw refuse(`the index option ${unknown}`, 'CannotCreateIndex');
  if (expireAfterSeconds !== undefined) {
    if (!(toNumber(expireAfterSeconds) >= 0)) throw cannot('expireAfterSeconds must be a number, 0 or more');
    if (Object.keys(key).length > 1 || Object.hasOwn(key, '_id'))
      throw cannot('TTL indexes are single-field indexes');
  }
  if (partialFilterExpression !== undefined) checkPartialFilter(partialFilterExpression);
  return {
    key,
    name,
    ...(unique === true && { unique }),
    ...(sparse === true && { sparse }),
    ...(expireAfterSeconds !== undefined && { expireAfterSeconds }),
    ...(isObject(partialFilterExpression) && { partialFilterExpression }),
  };
}

function checkPartialFilter(filter: unknown): void {
  if (!isObject(filter))
    throw new MongoError('CannotCreateIndex', 'partialFilterExpression must be an object');
  for (const [name, operand] of Object.entries(filter)) {
    if (name.startsWith('$') && !partialOperators.has(name)) {
      throw new MongoError('CannotCreateIndex', `Expression not supported in partial index: ${name}`);
    }
    if (name === '$exists' && operand === false) {
      throw new MongoError(
        'CannotCreateIndex',
        'Expression not supported in partial index: {$exists: false}',
      );
    }
    for (const part of Array.isArray(operand) ? operand : [operand])
      if (isObject(part)) checkPartialFilter(part);
  }
}
