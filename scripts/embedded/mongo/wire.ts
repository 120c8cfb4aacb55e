import { ChunkList } from '../../../shared/platform/runtime/chunk-list.ts';
import type { Doc } from './bson/document.ts';
import { decodeDocument, encodeDocument } from './bson/document.ts';

/** A command as received: its body, and the arrays sent next to it as raw documents. */
export type Request = {
  requestId: number;
  body: Doc;
  /** The bytes that `body` was decoded from. */
  rawBody: Buffer;
  sequences: Map<string, Buffer[]>;
  /** The reply's format. OP_QUERY is only used for the first `hello`. */
  isLegacy: boolean;
  wantsReply: boolean;
};

const lengthBytes = 4;
const headerBytes = 16;
/** An empty document consists of its length and a final byte. A document sequence is at least as long. */
const minDocumentBytes = 5;
const opReply = 1;
const opQuery = 2004;
const opMessage = 2013;
const checksumPresent = 1;
const moreToCome = 2;

export const maxMessageBytes = 48_000_000;

/**
 * Splits a connection's bytes into messages. Throws if a message has an invalid length, because the bytes after it
 * cannot be interpreted.
 */
export class MessageSplitter {
  readonly #received = new ChunkList();
  /** Bytes needed to continue: 4 for the length field, then the length of the message. */
  #neededBytes = lengthBytes;

  add(chunk: Buffer): void {
    this.#received.add(chunk);
  }

  /**
   * Returns the next message, or null if it is incomplete.
   * @throws Error if its length is invalid or exceeds `maxBytes`
   */
  next(maxBytes = Infinity): Buffer | null {
    if (this.#received.length < this.#neededBytes) return null;
    const bytes = this.#received.take();
    const size = bytes.readInt32LE(0);
    if (size < headerBytes || size > maxBytes) throw new Error(`invalid message length ${size}`);
    const isWhole = bytes.length >= size;
    const remainder = isWhole ? bytes.subarray(size) : bytes;
    this.#neededBytes = isWhole ? lengthBytes : size;
    if (remainder.length > 0) this.#received.add(remainder);
    return isWhole ? bytes.subarray(0, size) : null;
  }
}

export function parseMessage(message: Buffer): Request {
  const requestId = message.readInt32LE(4);
  const opcode = message.readInt32LE(12);
  if (opcode === opQuery) return parseQuery(message, requestId);
  if (opcode !== opMessage) throw new Error(`unsupported opcode ${opcode}`);
  const flags = message.readUInt32LE(headerBytes);
  if ((flags & 0xffff & ~(checksumPresent | moreToCome)) !== 0)
    throw new Error(`unknown OP_MSG flags ${flags}`);
  const end = flags & checksumPresent ? message.length - 4 : message.length;
  const sequences = new Map<string, Buffer[]>();
  let rawBody: Buffer | undefined;
  for (let at = headerBytes + 4; at < end;) {
    const kind = message[at];
    const size = message.readInt32LE(at + 1);
    // A smaller size would not advance to the next section and loop forever.
    if (size < minDocumentBytes || at + 1 + size > end)
      throw new Error(`invalid OP_MSG section length ${size}`);
    const section = message.subarray(at + 1, at + 1 + size);
    if (kind === 0) rawBody = section;
    else if (kind === 1) sequences.set(...parseSequence(section));
    else throw new Error(`unknown OP_MSG section kind ${kind}`);
    at += 1 + size;
  }
  if (rawBody === undefined) throw new Error('OP_MSG has no body section');
  const body = decodeDocument(rawBody);
  return { requestId, body, rawBody, sequences, isLegacy: false, wantsReply: (flags & moreToCome) === 0 };
}

function parseSequence(section: Buffer): [string, Buffer[]] {
  const nameEnd = section.indexOf(0, lengthBytes);
  if (nameEnd === -1) throw new Error('document sequence has no name');
  const documents: Buffer[] = [];
  for (let at = nameEnd + 1; at < section.length;) {
    const size = section.readInt32LE(at);
    if (size < minDocumentBytes || at + size > section.length)
      throw new Error(`invalid document length ${size} in a document sequence`);
    documents.push(section.subarray(at, at + size));
    at += size;
  }
  return [section.toString('utf8', lengthBytes, nameEnd), documents];
}

function parseQuery(message: Buffer, requestId: number): Request {
  const nameEnd = message.indexOf(0, headerBytes + 4);
  if (nameEnd === -1) throw new Error('OP_QUERY has no collection name');
  const start = nameEnd + 1 + 8;
  const raw = message.subarray(start, start + message.readInt32LE(start));
  const body = { ...decodeDocument(raw), $db: 'admin' };
  return {
    requestId,
    body,
    rawBody: encodeDocument(body),
    sequences: new Map(),
    isLegacy: true,
    wantsReply: true,
  };
}

export function encodeReply({ requestId, isLegacy }: Request, reply: Doc | Buffer): Buffer {
  const body = Buffer.isBuffer(reply) ? reply : encodeDocument(reply);
  // The header and flags before the body: OP_REPLY has flags, cursor id, starting point and count; OP_MSG has flags
  // and the kind of section.
  const prefix = Buffer.alloc(headerBytes + (isLegacy ? 20 : 5));
  prefix.writeInt32LE(prefix.length + body.length, 0);
  prefix.writeInt32LE(requestId, 8);
  prefix.writeInt32LE(isLegacy ? opReply : opMessage, 12);
  if (isLegacy) prefix.writeInt32LE(1, headerBytes + 16);
  return Buffer.concat([prefix, body]);
}

/** Encodes `{cursor: {<batch>: documents, id, ns}, ok: 1}` with the documents as stored. */
export function encodeCursorReply(
  batchName: 'firstBatch' | 'nextBatch',
  documents: Buffer[],
  id: bigint,
  namespace: string,
): Buffer {
  const idBytes = Buffer.alloc(8);
  idBytes.writeBigInt64LE(id);
  const nameBytes = Buffer.from(`${namespace}\0`);
  const nameLength = Buffer.alloc(4);
  nameLength.writeInt32LE(nameBytes.length);
  const one = Buffer.alloc(8);
  one.writeDoubleLE(1);
  const batch = wrapElements(
    documents.flatMap((document, i) => element(bsonType.object, String(i), document)),
  );
  const cursor = wrapElements([
    ...element(bsonType.array, batchName, batch),
    ...element(bsonType.int64, 'id', idBytes),
    ...element(bsonType.string, 'ns', nameLength, nameBytes),
  ]);
  return wrapElements([
    ...element(bsonType.object, 'cursor', cursor),
    ...element(bsonType.double, 'ok', one),
  ]);
}

const bsonType = { double: 1, string: 2, object: 3, array: 4, int64: 18 };

const element = (type: number, name: string, ...value: Buffer[]) => [
  Buffer.from(`${String.fromCharCode(type)}${name}\0`),
  ...value,
];

function wrapElements(elements: Buffer[]): Buffer {
  const document = Buffer.concat([Buffer.alloc(4), ...elements, Buffer.alloc(1)]);
  document.writeInt32LE(document.length);
  return document;
}
