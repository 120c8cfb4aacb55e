/** The parts of an HTTP response that a measurement needs. */
export interface ParsedResponse {
  readonly status: number;
  readonly bodyBytes: number;
  /** Deltas with text, in a stream of server-sent events. */
  readonly tokens: number;
  /** Whether the stream reached its `[DONE]`. */
  readonly isDone: boolean;
  /** When the first byte of the body arrived; null unless tokens are counted. */
  readonly firstByteAtMs: number | null;
  /** Present only on request, and for errors. */
  readonly body: string | null;
}

const headEnd = '\r\n\r\n';
const tokenMark = '"content":"';
const emptyTokenEnd = 0x22;
const doneMark = 'data: [DONE]\n\n';
/** Number of characters carried over to the next piece of a stream, because a mark or the end may be split. */
const carriedChars = Math.max(tokenMark.length, doneMark.length);

/**
 * Reads the responses on one keep-alive HTTP/1.1 connection, one after another, even if they are split across reads. It
 * runs on the same machine as the measured processes, so it examines no more bytes than necessary.
 */
export class ResponseReader {
  /** Whether to return the bodies of the following responses. */
  keepsBody = false;
  readonly #onResponse: (response: ParsedResponse) => void;
  readonly #countsTokens: boolean;
  #state: 'head' | 'fixed' | 'size' | 'chunk' | 'gap' | 'trailer' = 'head';
  /** The line or head being collected. */
  #text = '';
  /** Remaining bytes of the body or of the current chunk. */
  #remaining = 0;
  #status = 0;
  #bodyBytes = 0;
  #tokens = 0;
  #firstByteAtMs: number | null = null;
  #carried = '';
  #bodyChunks: Buffer[] = [];

  constructor(countsTokens: boolean, onResponse: (response: ParsedResponse) => void) {
    this.#countsTokens = countsTokens;
    this.#onResponse = onResponse;
  }

  /** @throws Error if the bytes are not an HTTP response of known length */
  push(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      switch (this.#state) {
        case 'head':
          at = this.#collect(bytes, at, headEnd, (head) => this.#parseHead(head));
          break;
        case 'size':
          at = this.#collect(bytes, at, '\r\n', (line) => this.#parseChunkSize(line));
          break;
        case 'trailer':
          at = this.#collect(bytes, at, '\r\n', (line) => {
            if (line === '') this.#finish();
          });
          break;
        case 'fixed':
        case 'chunk':
          at = this.#readBody(bytes, at);
          break;
        case 'gap': {
          const skipped = Math.min(this.#remaining, bytes.length - at);
          this.#remaining -= skipped;
          at += skipped;
          if (this.#remaining === 0) this.#state = 'size';
          break;
        }
        default:
          this.#state satisfies never;
      }
    }
  }

  /**
   * Collects text up to and including `end`, which may be split across calls.
   * @returns the index at which to continue
   */
  #collect(bytes: Buffer, at: number, end: string, onText: (text: string) => void): number {
    const before = this.#text.length;
    // A head is short, and often arrives together with the whole response. Examine no more than a head's length.
    const text = this.#text + bytes.toString('latin1', at, Math.min(bytes.length, at + 4_096));
    const found = text.indexOf(end, Math.max(0, before - end.length));
    if (found === -1) {
      this.#text = text;
      return at + text.length - before;
    }
    this.#text = '';
    onText(text.slice(0, found));
    return at + found + end.length - before;
  }

  #parseHead(head: string): void {
    this.#status = Number(head.slice(9, 12));
    this.#bodyBytes = 0;
    this.#tokens = 0;
    this.#firstByteAtMs = null;
    this.#carried = '';
    this.#bodyChunks = [];
    const length = /\r\ncontent-length: *(\d+)/i.exec(head);
    if (length !== null) {
      this.#remaining = Number(length[1]);
      this.#state = 'fixed';
      if (this.#remaining === 0) this.#finish();
    } else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#state = 'size';
    } else {
      throw new Error(`a response without a length: ${head.slice(0, 80)}`);
    }
  }

  #parseChunkSize(line: string): void {
    const size = Number.parseInt(line, 16);
    if (Number.isNaN(size)) throw new Error(`a chunk without a size: ${line.slice(0, 80)}`);
    this.#remaining = size;
    this.#state = size === 0 ? 'trailer' : 'chunk';
  }

  #readBody(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#remaining);
    this.#bodyBytes += end - at;
    this.#remaining -= end - at;
    if (this.keepsBody || this.#status !== 200) this.#bodyChunks.push(Buffer.from(bytes.subarray(at, end)));
    if (this.#countsTokens) {
      this.#firstByteAtMs ??= performance.now();
      this.#countTokens(bytes.toString('latin1', at, end));
    }
    if (this.#remaining === 0) {
      if (this.#state === 'fixed') this.#finish();
      else {
        this.#state = 'gap';
        this.#remaining = 2;
      }
    }
    return end;
  }

  #countTokens(piece: string): void {
    const text = this.#carried + piece;
    let searchFrom = 0;
    for (let at = text.indexOf(tokenMark); at !== -1; at = text.indexOf(tokenMark, searchFrom)) {
      const end = at + tokenMark.length;
      // The character after the mark has not arrived yet, so carry the whole mark over.
      if (end === text.length) break;
      if (text.charCodeAt(end) !== emptyTokenEnd) this.#tokens += 1;
      searchFrom = end;
    }
    this.#carried = text.slice(Math.max(searchFrom, text.length - carriedChars));
  }

  #finish(): void {
    const chunks = this.#bodyChunks;
    this.#bodyChunks = [];
    this.#state = 'head';
    this.#onResponse({
      status: this.#status,
      bodyBytes: this.#bodyBytes,
      tokens: this.#tokens,
      firstByteAtMs: this.#firstByteAtMs,
      isDone: this.#carried.endsWith(doneMark),
      body: chunks.length > 0 ? Buffer.concat(chunks).toString('utf8') : null,
    });
  }
}
