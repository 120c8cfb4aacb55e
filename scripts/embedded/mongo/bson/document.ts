import { BSON } from 'bson';
import { MongoError, unsupported } from '../errors.ts';
import { isPlain } from './plain-document.ts';

export type Doc = Record<string, unknown>;

export const maxDocumentBytes = 16 * 1024 * 1024;

/**
 * Decodes a document. Numbers keep their BSON type (Int32, Double, Long), so that an update writes back what it read.
 */
export function decodeDocument(bytes: Uint8Array): Doc {
  return BSON.deserialize(bytes, { promoteValues: false, promoteLongs: false, bsonRegExp: true });
}

/**
 * Decodes a document from a client.
 * @throws MongoError if the resulting object is not exactly what was sent
 */
export function parseDocument(raw: Buffer): Doc {
  const document = decodeDocument(raw);
  if (!isPlain(raw, document)) checkUnchanged(document, raw);
  return document;
}

/**
 * Checks that a decoded document is exactly what was sent, by encoding it again. JavaScript keeps only one of two
 * fields with the same name, moves names such as "7" to the front, and cannot represent some BSON values.
 */
export function checkUnchanged(document: Doc, raw: Buffer): void {
  if (!encodeDocument(document).equals(raw)) {
    throw unsupported(
      'a document with a duplicate field, a field with a number as its name, or a value out of range',
      'BadValue',
    );
  }
}

export function encodeDocument(document: Doc): Buffer {
  const bytes = BSON.serialize(document, { ignoreUndefined: true });
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function isObject(value: unknown): value is Doc {
  return value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype;
}

/** Returns true for `{$gt: 1}` and the like: an object whose first field is an operator. */
export function isOperatorObject(value: unknown): value is Doc {
  return isObject(value) && Object.keys(value)[0]?.startsWith('$') === true;
}

/** Returns an own field of the object, so that an inherited name such as `toString` reads as missing. */
export function getField(object: Doc, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

export const getId = (document: Doc) => getField(document, '_id');

/** Sets a field. Rejects `__proto__`, because assigning it would change the object's prototype. */
export function setField(object: Doc, name: string, value: unknown): void {
  if (name === '__proto__') throw new MongoError('BadValue', 'a field cannot be named __proto__');
  object[name] = value;
}
