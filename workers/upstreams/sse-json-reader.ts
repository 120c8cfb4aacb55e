// decision 0063
import { readJson } from './read-json.ts';
import type { HttpResponse } from './http-client.ts';
import { isRecord, type JsonRecord } from '../../shared/encoding/json-record.ts';
import { UpstreamError } from './upstream.ts';

/** An event of a stream whose data is a JSON object. */
export interface SseJsonEvent {
  /** The `event:` field; empty if there is none. */
  readonly name: string;
  readonly data: JsonRecord;
}

const lineFeed = 10;
const carriageReturn = 13;
const colon = 58;
/** As latin1. */
const byteOrderMark = '\u00ef\u00bb\u00bf';
/** Limit for field and event names. We do not use longer ones. */
const maxNameBytes = 64;
const endMarker = '[DONE]';

/**
 * Reads server-sent events (WHATWG HTML, section 9.2.6) whose data may be tens of megabytes, such as images in base64.
 * The data is passed to the JSON reader as it arrives, and accounts take turns: the bytes of an event are never in
 * memory as a whole, and the work is linear in its length for any size of chunks. `createSseParser` is simpler, and
 * holds whole events in memory.
 */
export class SseJsonReader {
  readonly #response: HttpResponse;
  readonly #maxEventBytes: number;
  readonly #accountId: string;
  /** Bytes that were received but not processed yet. */
  #unprocessed: Buffer = Buffer.alloc(0);
  #isEnded = false;
  #isFirstLine = true;
  /** Whether the remainder of the current line has not been read yet. */
  #isInLine = false;
  #isAfterCarriageReturn = false;
  #name = '';
  #dataStart = '';

  /** @param maxEventBytes a longer event is an UpstreamError */
  constructor(response: HttpResponse, maxEventBytes: number, accountId: string) {
    this.#response = response;
    this.#maxEventBytes = maxEventBytes;
    this.#accountId = accountId;
  }

  /**
   * Returns the next event; null after the end of the body or `[DONE]`. Many servers omit the blank line after their
   * last event, so an event that is pending at the end is returned.
   * @throws UpstreamError if an event is too long or is not a JSON object
   */
  async next(): Promise<SseJsonEvent | null> {
    this.#name = '';
    this.#dataStart = '';
    const parsed = await readJson(this.#readData(), this.#accountId);
    if (parsed !== null && isRecord(parsed.value)) return { name: this.#name, data: parsed.value };
    if (this.#dataStart === endMarker || (this.#isEnded && this.#dataStart === '')) return null;
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
      // An event without data is ignored, and its name is not used for the next one.
      if (isBlank) this.#name = '';
      if (field === 'event') this.#name = await this.#readShortValue();
      if (field !== 'data') {
        await this.#skipLine();
        continue;
      }
      // Several data lines form one text, joined with line feeds, which have no meaning between the parts of JSON.
      if (hasData) yield Buffer.from('\n');
      hasData = true;
      for await (const piece of this.#readLine()) {
        length += piece.length;
        if (length > this.#maxEventBytes) {
          const message = `the upstream sent an event of more than ${this.#maxEventBytes} bytes`;
          throw new UpstreamError('unavailable', message);
        }
        this.#recordStart(piece);
        yield piece;
      }
    }
  }

  /** Records one character more than the end marker has, to distinguish it from data that only starts like it. */
  #recordStart(piece: Buffer): void {
    const length = endMarker.length + 1;
    if (this.#dataStart.length >= length) return;
    this.#dataStart = (this.#dataStart + piece.toString('latin1', 0, length + 1)).trim().slice(0, length);
  }

  /** Returns null at the end of the body, and an empty name for a comment or a blank line. */
  async #readFieldName(): Promise<string | null> {
    let name = '';
    while (await this.#fill()) {
      const end = findLineEnd(this.#unprocessed);
      const line = this.#unprocessed.subarray(0, end);
      const nameEnd = line.indexOf(colon);
      name += line.toString('latin1', 0, Math.min(nameEnd === -1 ? line.length : nameEnd, maxNameBytes));
      name = name.slice(0, maxNameBytes);
      this.#isInLine = nameEnd !== -1;
      if (this.#isInLine) this.#unprocessed = this.#unprocessed.subarray(nameEnd + 1);
      else if (end < this.#unprocessed.length) this.#endLine(end);
      else {
        this.#unprocessed = Buffer.alloc(0);
        continue;
      }
      const hasByteOrderMark = this.#isFirstLine && name.startsWith(byteOrderMark);
      this.#isFirstLine = false;
      return hasByteOrderMark ? name.slice(byteOrderMark.length) : name;
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

  /** Yields the remainder of a line, without the line end. */
  async *#readLine(): AsyncGenerator<Buffer> {
    while (this.#isInLine && (await this.#fill())) {
      const end = findLineEnd(this.#unprocessed);
      const piece = this.#unprocessed.subarray(0, end);
      if (end < this.#unprocessed.length) this.#endLine(end);
      else this.#unprocessed = Buffer.alloc(0);
      if (piece.length > 0) yield piece;
    }
  }

  #endLine(end: number): void {
    this.#isInLine = false;
    this.#isAfterCarriageReturn = this.#unprocessed[end] === carriageReturn;
    this.#unprocessed = this.#unprocessed.subarray(end + 1);
  }

  /** @returns whether there are bytes to process */
  async #fill(): Promise<boolean> {
    for (;;) {
      if (this.#isAfterCarriageReturn && this.#unprocessed.length > 0) {
        this.#isAfterCarriageReturn = false;
        if (this.#unprocessed[0] === lineFeed) this.#unprocessed = this.#unprocessed.subarray(1);
      }
      if (this.#unprocessed.length > 0) return true;
      const chunk = this.#isEnded ? null : await this.#response.next();
      this.#isEnded = chunk === null;
      if (chunk === null) return false;
      this.#unprocessed = chunk;
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
