import { randomUUID } from 'node:crypto';
import { encodeJson } from '../../shared/encoding/json-pieces.ts';

/** Large enough for little overhead, and small enough to be encrypted without blocking the event loop. */
const pieceBytes = 256 * 1024;

/** The encoded body of a request. Several calls may send the same one. */
export class RequestBody {
  readonly contentType: string;
  readonly pieces: readonly Buffer[];

  constructor(contentType: string, pieces: readonly Buffer[]) {
    this.contentType = contentType;
    this.pieces = pieces;
  }

  get length(): number {
    return this.pieces.reduce((sum, piece) => sum + piece.length, 0);
  }
}

/** Encodes a body as JSON. If it is large, this yields to other work; accounts take turns. */
export async function encodeJsonBody(value: object, accountId: string): Promise<RequestBody> {
  return new RequestBody('application/json', await encodeJson(value, accountId));
}

export interface FormFile {
  readonly name: string;
  readonly fileName: string;
  readonly contentType: string;
  readonly bytes: Buffer;
}

/**
 * Encodes `multipart/form-data` (RFC 7578). Field and file names are our own and need no escaping. The bytes of the
 * files are not copied.
 */
export function encodeMultipartBody(
  fields: Readonly<Record<string, unknown>>,
  files: readonly FormFile[],
): RequestBody {
  const boundary = `model-gateway-${randomUUID()}`;
  const pieces: Buffer[] = [];
  for (const [name, value] of Object.entries(fields)) {
    pieces.push(
      Buffer.from(
        `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${String(value)}\r\n`,
      ),
    );
  }
  for (const { name, fileName, contentType, bytes } of files) {
    const disposition = `form-data; name="${name}"; filename="${fileName}"`;
    const head = `content-disposition: ${disposition}\r\ncontent-type: ${contentType}\r\n\r\n`;
    pieces.push(Buffer.from(`--${boundary}\r\n${head}`), ...cutBytes(bytes), Buffer.from('\r\n'));
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`));
  return new RequestBody(`multipart/form-data; boundary=${boundary}`, pieces);
}

function* cutBytes(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}
