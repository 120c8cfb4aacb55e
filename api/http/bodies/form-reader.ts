import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { sniffImageType, sniffedImageBytes } from '../../../shared/contract/image-type.ts';
import { ChunkList } from '../../../shared/platform/runtime/chunk-list.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import type { BodyReader } from './body-reader.ts';
import { FormFields, type FormContract } from './form-fields.ts';

/** An image edit has up to 17 images and some twenty other fields. */
const maxParts = 64;
/** Limit for all header lines of a part: a name, a file name and a type. */
const maxHeaderBytes = 8_192;
const maxHeaderPairs = 16;
/**
 * Minimum bytes parsed at a time. Each piece of a file is a string until the form ends, and a string of a few bytes
 * takes far more memory than these bytes.
 */
const minPieceBytes = 16 * 1024;
/** Memory of a part in addition to its bytes. */
const bytesPerPart = 4_096;
const mediaType = /^[a-z0-9!#$&^_.+-]{1,60}\/[a-z0-9!#$&^_.+-]{1,60}$/;

interface Part {
  readonly name: string | undefined;
  readonly content: FileText | PlainText;
}

/**
 * Parses `multipart/form-data` (RFC 7578) as it arrives into the body that the same request would have as JSON. Files
 * become data URIs, whose base64 is encoded as the bytes arrive. The caller accounts for the memory.
 */
export class FormReader implements BodyReader {
  readonly #contract: FormContract;
  readonly #busboy: BusboyInstance;
  readonly #parts: Part[] = [];
  /** Chunks too short to be parsed separately. */
  readonly #short = new ChunkList();
  #receivedBytes = 0;
  #fail!: (error: AppError) => void;
  readonly #failed: Promise<never>;
  /** The parser may finish before `end` is called: at the last boundary of a form without parts. */
  readonly #finished: Promise<void>;

  /** @throws AppError if the Content-Type has no boundary */
  constructor(contentType: string, contract: FormContract) {
    this.#contract = contract;
    this.#failed = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    // `push` and `end` await this promise. If it is rejected between two of these calls, the process would crash
    // without this handler.
    this.#failed.catch(() => undefined);
    try {
      this.#busboy = new Busboy({
        headers: { 'content-type': contentType },
        limits: { parts: maxParts, headerPairs: maxHeaderPairs, headerSize: maxHeaderBytes },
        // Receive texts as bytes too. In strings, invalid UTF-8 would already be replaced.
        isPartAFile: () => true,
      });
    } catch (error) {
      const msg = 'The Content-Type header has no form boundary. Let your HTTP library set this header.';
      throw invalidForm(msg, error);
    }
    this.#finished = new Promise<void>((resolve) => this.#busboy.once('finish', resolve));
    // A part may have no name or file name, which the package's types do not show.
    this.#busboy.on(
      'file',
      (name: string | undefined, stream, fileName: string | undefined, encoding, type) =>
        this.#open(name, stream, { isFile: fileName !== undefined || !isTextType(type), encoding, type }),
    );
    this.#busboy.on('partsLimit', () =>
      this.#fail(invalidForm(`The form has more than ${maxParts} parts. Send fewer.`)),
    );
    this.#busboy.on('error', (error) => this.#fail(malformed(error)));
  }

  get extraBytes(): number {
    return Math.ceil(this.#receivedBytes / 3) + this.#parts.length * bytesPerPart;
  }

  push(chunk: Buffer): void | Promise<void> {
    this.#receivedBytes += chunk.length;
    this.#short.add(chunk);
    return this.#short.length < minPieceBytes ? undefined : this.#parse(this.#short.take());
  }

  async #parse(chunk: Buffer): Promise<void> {
    const written = new Promise<void>((resolve) => this.#busboy.write(chunk, () => resolve()));
    await Promise.race([written, this.#failed]);
  }

  async end(): Promise<unknown> {
    if (this.#short.length > 0) await this.#parse(this.#short.take());
    this.#busboy.end();
    await Promise.race([this.#finished, this.#failed]);
    const fields = new FormFields();
    for (const { name, content } of this.#parts)
      fields.add(name, content.end(name), { isFile: content instanceof FileText });
    return fields.toBody(this.#contract);
  }

  #open(
    name: string | undefined,
    stream: Readable,
    { isFile, encoding, type }: { isFile: boolean; encoding: string; type: string },
  ): void {
    if (encoding === 'base64' || encoding === 'quoted-printable') {
      const part = name === undefined ? 'A part' : `The part ${shorten(name)}`;
      this.#fail(invalidForm(`${part} has a Content-Transfer-Encoding. Send its bytes unencoded.`));
    }
    const content = isFile ? new FileText(type) : new PlainText();
    this.#parts.push({ name, content });
    stream.on('data', (chunk: Buffer) => content.push(chunk));
    stream.on('error', (error: unknown) => this.#fail(malformed(error)));
  }
}

const isTextType = (type: string): boolean => type.startsWith('text/') || type === 'application/json';

/** A file as a data URI. */
class FileText {
  readonly #declared: string;
  #head = Buffer.alloc(0);
  #base64 = '';
  /** Up to two bytes that remain to be encoded together with the next ones. */
  #remainder = Buffer.alloc(0);

  constructor(declared: string) {
    this.#declared = declared;
  }

  push(chunk: Buffer): void {
    if (this.#head.length < sniffedImageBytes)
      this.#head = Buffer.concat([this.#head, chunk.subarray(0, sniffedImageBytes)]);
    const bytes = this.#remainder.length === 0 ? chunk : Buffer.concat([this.#remainder, chunk]);
    const whole = bytes.length - (bytes.length % 3);
    this.#base64 += bytes.toString('base64', 0, whole);
    // Copy, so that the chunk is not retained.
    this.#remainder = Buffer.from(bytes.subarray(whole));
  }

  /**
   * Detects the media type from the bytes: many programs send files without a type, or with one guessed from the name.
   */
  end(): string {
    const declared = mediaType.test(this.#declared) ? this.#declared : 'application/octet-stream';
    const type = sniffImageType(this.#head) ?? declared;
    return `data:${type};base64,${this.#base64}${this.#remainder.toString('base64')}`;
  }
}

class PlainText {
  readonly #chunks = new ChunkList();

  push(chunk: Buffer): void {
    this.#chunks.add(chunk);
  }

  end(name: string | undefined): string {
    if (this.#chunks.length === 0) return '';
    const bytes = this.#chunks.take();
    if (isUtf8(bytes)) return bytes.toString('utf8');
    const msg = 'is not valid UTF-8. Send text as UTF-8, and give files a file name.';
    throw invalidField(['body', shorten(name ?? '')], msg, { type: 'unicode_invalid' });
  }
}

function malformed(cause: unknown): AppError {
  const msg =
    `The body is not a complete multipart/form-data form: ${shorten((cause as Error).message)}. ` +
    'Create it with an HTTP library, and send all of it.';
  return invalidForm(msg, cause);
}

function invalidForm(message: string, cause?: unknown): AppError {
  const issues = [{ loc: ['body'], msg: message, type: 'form_invalid' }];
  return new AppError('validation_failed', { message, issues, cause });
}
