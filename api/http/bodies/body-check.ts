import { tooLarge } from '../../../shared/contract/too-large.ts';
import { Utf8Check } from '../../../shared/encoding/utf8-check.ts';
import { checkUtf8 } from './body-errors.ts';

/** Checks a body as it arrives: its length, and that it is UTF-8. */
export class BodyCheck {
  readonly #limitBytes: number;
  /** Null if the body may hold any bytes. */
  readonly #utf8: Utf8Check | null;
  #length = 0;

  constructor(limitBytes: number, isText = true) {
    this.#limitBytes = limitBytes;
    this.#utf8 = isText ? new Utf8Check() : null;
  }

  /** Bytes so far. */
  get length(): number {
    return this.#length;
  }

  /** @throws AppError `payload_too_large`, `validation_failed` */
  push(chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length > this.#limitBytes) throw tooLarge(this.#limitBytes);
    if (this.#utf8 !== null) checkUtf8(this.#utf8.push(chunk));
  }

  /** @throws AppError `validation_failed` if the body ends within a character */
  end(): void {
    if (this.#utf8 !== null) checkUtf8(this.#utf8.end());
  }
}
