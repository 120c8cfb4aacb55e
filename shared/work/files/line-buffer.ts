import { nextWorkTurn } from '../../fairness/work-turns.ts';
import { LongLine } from './long-line.ts';

/** A line of the input of a batch, without its line break. */
export type CollectedLine =
  | { readonly byteLength: number; readonly bytes: Buffer }
  /** Too long: only its `custom_id` is known, which is '' if it has none. */
  | { readonly byteLength: number; readonly bytes: null; readonly customId: string };

/** Space, tab and carriage return. */
export function isBlank(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  return true;
}

/**
 * Collects the pieces of one line after the other. Of a line that is too long, the `custom_id` is found as the line
 * arrives, wherever it is, and nothing else is kept.
 */
export class LineBuffer {
  readonly #accountId: string;
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #long: LongLine | null = null;
  #byteLength = 0;

  /**
   * @param accountId in whose event-loop turns long lines are read
   * @param maxBytes of a line that is kept
   */
  constructor(accountId: string, maxBytes: number) {
    this.#accountId = accountId;
    this.#maxBytes = maxBytes;
  }

  /** Of the current line so far. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /** Keeps the piece. Wait for the promise, if there is one, before the next call. */
  add(piece: Buffer): void | Promise<void> {
    if (piece.length === 0) return;
    this.#byteLength += piece.length;
    if (this.#long !== null) {
      this.#long.push(piece);
      return;
    }
    this.#pieces.push(piece);
    if (this.#byteLength > this.#maxBytes) return this.#becomeLong();
  }

  async #becomeLong(): Promise<void> {
    const pieces = this.#pieces;
    this.#pieces = [];
    const line = new LongLine('names');
    this.#long = line;
    for (const piece of pieces) {
      line.push(piece);
      await nextWorkTurn(this.#accountId);
    }
  }

  /** Ends the line. @returns null if it is blank */
  take(): CollectedLine | null {
    const [pieces, long, byteLength] = [this.#pieces, this.#long, this.#byteLength];
    if (byteLength === 0) return null;
    this.#pieces = [];
    this.#long = null;
    this.#byteLength = 0;
    if (long !== null) {
      const { custom_id: id } = long.facts;
      return long.isBlank ? null : { byteLength, bytes: null, customId: typeof id === 'string' ? id : '' };
    }
    const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    return isBlank(bytes) ? null : { byteLength, bytes };
  }
}
