import { isUtf8 } from 'node:buffer';
import { invalidField } from '../../../shared/contract/errors.ts';
import { sniffImageType, sniffedImageBytes } from '../../../shared/contract/image-type.ts';
import { ChunkList } from '../../../shared/platform/runtime/chunk-list.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import type { BodyReader } from './body-reader.ts';
import { FormFields, type FormContract } from './form-fields.ts';
import { FormParser } from './form-parser.ts';

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
  readonly #parser: FormParser;
  readonly #parts: Part[] = [];
  /** Chunks too short to be parsed separately. */
  readonly #short = new ChunkList();
  #receivedBytes = 0;

  /** @throws AppError if the Content-Type has no boundary */
  constructor(contentType: string, contract: FormContract) {
    this.#contract = contract;
    this.#parser = new FormParser(contentType, ({ name, fileName, type }) => {
      const isFile = fileName !== undefined || !isTextType(type);
      const content = isFile ? new FileText(type) : new PlainText();
      this.#parts.push({ name, content });
      return { push: (chunk) => content.push(chunk) };
    });
  }

  get extraBytes(): number {
    return Math.ceil(this.#receivedBytes / 3) + this.#parts.length * bytesPerPart;
  }

  push(chunk: Buffer): void | Promise<void> {
    this.#receivedBytes += chunk.length;
    this.#short.add(chunk);
    return this.#short.length < minPieceBytes ? undefined : this.#parser.push(this.#short.take());
  }

  async end(): Promise<unknown> {
    if (this.#short.length > 0) await this.#parser.push(this.#short.take());
    await this.#parser.end();
    const fields = new FormFields();
    for (const { name, content } of this.#parts)
      fields.add(name, content.end(name), { isFile: content instanceof FileText });
    return fields.toBody(this.#contract);
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
