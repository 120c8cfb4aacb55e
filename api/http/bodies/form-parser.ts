import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { AppError } from '../../../shared/contract/errors.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';

/** An image edit has up to 17 images and some twenty other fields. */
const maxParts = 64;
/** Limit for all header lines of a part: a name, a file name and a type. */
const maxHeaderBytes = 8_192;
const maxHeaderPairs = 16;

/** What the headers of a part say. */
export interface FormPart {
  readonly name: string | undefined;
  /** Undefined if the part is no file, or a file without a name. */
  readonly fileName: string | undefined;
  readonly type: string;
}

/** Takes the bytes of a part. May throw an AppError, which the parser then throws. */
export interface PartSink {
  push(chunk: Buffer): void;
  /** Called when the part is complete. */
  end?(): void;
}

/**
 * Parses `multipart/form-data` (RFC 7578) as it arrives, and passes on the bytes of its parts. Keeps nothing of them.
 */
export class FormParser {
  readonly #busboy: BusboyInstance;
  #fail!: (error: unknown) => void;
  readonly #failed: Promise<never>;
  /** The parser may finish before `end` is called: at the last boundary of a form without parts. */
  readonly #finished: Promise<void>;

  /**
   * @param openPart called at the start of each part; may throw an AppError, which `push` then throws
   * @throws AppError if the Content-Type has no boundary
   */
  constructor(contentType: string, openPart: (part: FormPart) => PartSink) {
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
      (name: string | undefined, stream, fileName: string | undefined, encoding, type) => {
        if (encoding === 'base64' || encoding === 'quoted-printable') {
          const part = name === undefined ? 'A part' : `The part ${shorten(name)}`;
          this.#fail(invalidForm(`${part} has a Content-Transfer-Encoding. Send its bytes unencoded.`));
        }
        stream.on('error', (error: unknown) => this.#fail(malformed(error)));
        const sink = this.#try(() => openPart({ name, fileName, type }));
        stream.on('data', (chunk: Buffer) => this.#try(() => sink?.push(chunk)));
        stream.on('end', () => this.#try(() => sink?.end?.()));
      },
    );
    this.#busboy.on('partsLimit', () =>
      this.#fail(invalidForm(`The form has more than ${maxParts} parts. Send fewer.`)),
    );
    this.#busboy.on('error', (error) => this.#fail(malformed(error)));
  }

  #try<T>(run: () => T): T | undefined {
    try {
      return run();
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** @throws AppError if the form is malformed, or a part is refused */
  async push(chunk: Buffer): Promise<void> {
    const written = new Promise<void>((resolve) => this.#busboy.write(chunk, () => resolve()));
    await Promise.race([written, this.#failed]);
  }

  /** @throws AppError if the form is incomplete */
  async end(): Promise<void> {
    this.#busboy.end();
    await Promise.race([this.#finished, this.#failed]);
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
