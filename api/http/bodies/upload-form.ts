import { invalidField } from '../../../shared/contract/errors.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { FormParser, type PartSink } from './form-parser.ts';

/** No field of an upload is longer. */
const maxFieldBytes = 1_024;
const fileField = 'file';

export interface UploadOptions {
  /** Called when the file begins. Throws an AppError to refuse it. */
  readonly onFile: (name: string) => void;
  /** Called with each other field when it has arrived. Throws an AppError to refuse it. */
  readonly onField: (name: string, value: string) => void;
}

/**
 * Reads a form with one file and a few short fields, in any order. The bytes of the file are passed on as they arrive,
 * and not kept.
 */
export class UploadForm {
  readonly #options: UploadOptions;
  readonly #parser: FormParser;
  #hasFile = false;
  /** Bytes of the file that have not been taken. */
  #pieces: Buffer[] = [];

  /** @throws AppError if the Content-Type has no boundary */
  constructor(contentType: string, options: UploadOptions) {
    this.#options = options;
    this.#parser = new FormParser(contentType, ({ name = '', fileName }) => this.#open(name, fileName));
  }

  /** @returns the bytes of the file in this chunk */
  async push(chunk: Buffer): Promise<Buffer[]> {
    await this.#parser.push(chunk);
    return this.#takePieces();
  }

  /** @throws AppError if the form is incomplete or has no file */
  async end(): Promise<Buffer[]> {
    await this.#parser.end();
    if (!this.#hasFile)
      throw invalidField(['body', fileField], 'The form has no file. Send it as the part "file".', {
        type: 'missing',
      });
    return this.#takePieces();
  }

  #takePieces(): Buffer[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }

  #open(name: string, fileName: string | undefined): PartSink {
    if (name === fileField) {
      if (this.#hasFile)
        throw invalidField(['body', fileField], 'The form has more than one file. Send one.');
      this.#hasFile = true;
      this.#options.onFile(fileName ?? '');
      return {
        push: (chunk) => {
          this.#pieces.push(chunk);
        },
      };
    }
    if (fileName !== undefined)
      throw invalidField(
        ['body', shorten(name)],
        `The form has a file named ${shorten(JSON.stringify(name))}. Send one file, as the part "file".`,
      );
    return this.#readField(name);
  }

  #readField(name: string): PartSink {
    const chunks: Buffer[] = [];
    let byteLength = 0;
    return {
      push: (chunk) => {
        byteLength += chunk.length;
        if (byteLength > maxFieldBytes)
          throw invalidField(['body', shorten(name)], `The field is longer than ${maxFieldBytes} bytes.`);
        // Copied, so that the rest of the chunk is not retained.
        chunks.push(Buffer.from(chunk));
      },
      end: () => this.#options.onField(name, Buffer.concat(chunks).toString('utf8')),
    };
  }
}
