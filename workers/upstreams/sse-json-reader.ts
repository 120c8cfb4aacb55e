import { readJson } from '../../shared/encoding/read-json.ts';
import type { HttpResponse } from './http-client.ts';
import { isRecord, type JsonRecord } from '../../shared/encoding/json-record.ts';
import { UpstreamError } from './upstream.ts';

/** An event of a stream whose data is a JSON object. */
export interface SseJsonEvent {
  /** The `event:` field; empty if the stream names none. */
  readonly name: string;
  readonly data: JsonRecord;
}

const lineFeed = 10;
const carriageReturn = 13;
const colon = 58;
/** As latin1. */
const byteOrderMark = '\u00ef\u00bb\u00bf';
/** Limit for field and event names. Longer ones are unknown to us. */
const maxNameBytes = 64;
const endMark = '[DONE]';

/**
 * Reads server-sent events (WHATWG HTML, section 9.2.6) whose data may be tens of megabytes, such as images in
 * base64. The data goes to the JSON reader as it arrives, in turns of the account: an event is never held as
 * bytes, and the work is linear in its length, however it is split into chunks. `createSseParser` is simpler,
 * and holds an event whole.
 */
export class SseJsonReader {
  readonly #answer: HttpResponse;
  readonly #maxEventBytes: number;
  readonly #accountId: string;
  /** Received but not processed yet. */
  #rest: Buffer = Buffer.alloc(0);
  #isEnded = false;
  #isFirstLine = true;
  /** Whether the value of a field is still to be read. */
  #isInLine = false;
  #skipsLineFeed = false;
  #name = '';
  #dataStart = '';

  /** @param maxEventBytes a longer event is an UpstreamError */
  constructor(answer: HttpResponse, maxEventBytes: number, accountId: string) {
    this.#answer = answer;
    this.#maxEventBytes = maxEventBytes;
    this.#accountId = accountId;
  }

  /**
   * Returns the next event; null if the body ended or sent `[DONE]`. Many servers leave out the blank line
   * after their last event, so an event pending at the end counts.
   * @throws UpstreamError if an event is too long or is not a JSON object
   */
  async next(): Promise<SseJsonEvent | null> {
    this.#name = '';
    this.#dataStart = '';
    const read = await readJson(this.#readData(), this.#accountId);
    if (read !== null && isRecord(read.value)) return { name: this.#name, data: read.value };
    if (this.#dataStart === endMark || (this.#isEnded && this.#dataStart === '')) return null;
    throw new UpstreamError('unavailable', 'the upstream sent an event that is not a JSON object');
  }

  /** Yields the data of one event, piece by piece; nothing if the body has ended. */
  async *#readData(): AsyncGenerator<Buffer> {
    let hasData = false;
    let length = 0;
    for (;;) {
      const field = await this.#readFieldName();
      const isBlank = field === '' && !this.#isInLine;
      if (field === null || (isBlank && hasData)) return;
      // An event without data is ignored, and its name does not carry over.
      if (isBlank) this.#name = '';
      if (field === 'event') this.#name = await this.#readShortValue();
      if (field !== 'data') {
        await this.#skipLine();
        continue;
      }
      // Several data lines form one text. Between the parts of a JSON text, a line feed has no meaning.
      if (hasData) yield Buffer.from('\n');
      hasData = true;
      for await (const piece of this.#readLine()) {
        length += piece.length;
        if (length > this.#maxEventBytes) {
          const message = `the upstream sent an event of over ${this.#maxEventBytes} bytes`;
          throw new UpstreamError('unavailable', message);
        }
        this.#keepStart(piece);
        yield piece;
      }
    }
  }

  /** Keeps one character more than the end mark has, to tell it from data that only starts like it. */
  #keepStart(piece: Buffer): void {
    const length = endMark.length + 1;
    if (this.#dataStart.length >= length) return;
    this.#dataStart = (this.#dataStart + piece.toString('latin1', 0, length + 1)).trim().slice(0, length);
  }

  /** Returns null at the end of the body; an empty name for a comment and for a blank line. */
  async #readFieldName(): Promise<string | null> {
    let name = '';
    while (await this.#fill()) {
      const end = findLineEnd(this.#rest);
      const line = this.#rest.subarray(0, end);
      const nameEnd = line.indexOf(colon);
      name += line.toString('latin1', 0, Math.min(nameEnd === -1 ? line.length : nameEnd, maxNameBytes));
      name = name.slice(0, maxNameBytes);
      this.#isInLine = nameEnd !== -1;
      if (this.#isInLine) this.#rest = this.#rest.subarray(nameEnd + 1);
      else if (end < this.#rest.length) this.#endLine(end);
      else {
        this.#rest = Buffer.alloc(0);
        continue;
      }
      const isMarked = this.#isFirstLine && name.startsWith(byteOrderMark);
      this.#isFirstLine = false;
      return isMarked ? name.slice(byteOrderMark.length) : name;
    }
    return null;
  }

  async #readShortValue(): Promise<string> {
    let value = '';
    for await (const piece of this.#readLine()) {
      value = (value + piece.toString('latin1', 0, maxNameBytes)).slice(0, maxNameBytes);
    }
    return value.trim();
  }

  async #skipLine(): Promise<void> {
    const line = this.#readLine();
    while ((await line.next()).done !== true);
  }

  /** Yields the rest of a line, without its line end. */
  async *#readLine(): AsyncGenerator<Buffer> {
    while (this.#isInLine && (await this.#fill())) {
      const end = findLineEnd(this.#rest);
      const piece = this.#rest.subarray(0, end);
      if (end < this.#rest.length) this.#endLine(end);
      else this.#rest = Buffer.alloc(0);
      if (piece.length > 0) yield piece;
    }
  }

  #endLine(end: number): void {
    this.#isInLine = false;
    this.#skipsLineFeed = this.#rest[end] === carriageReturn;
    this.#rest = this.#rest.subarray(end + 1);
  }

  /** @returns whether there are bytes to process */
  async #fill(): Promise<boolean> {
    for (;;) {
      if (this.#skipsLineFeed && this.#rest.length > 0) {
        this.#skipsLineFeed = false;
        if (this.#rest[0] === lineFeed) this.#rest = this.#rest.subarray(1);
      }
      if (this.#rest.length > 0) return true;
      const chunk = this.#isEnded ? null : await this.#answer.next();
      this.#isEnded = chunk === null;
      if (chunk === null) return false;
      this.#rest = chunk;
    }
  }
}

/** Returns the index of the first line feed or carriage return; the length if there is none. */
function findLineEnd(bytes: Buffer): number {
  const feed = bytes.indexOf(lineFeed);
  const line = feed === -1 ? bytes : bytes.subarray(0, feed);
  const carriage = line.indexOf(carriageReturn);
  return carriage === -1 ? line.length : carriage;
}
