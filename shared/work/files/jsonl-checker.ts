import { isUtf8 } from 'node:buffer';
import { countTokensAsync, type CountingTurn } from '../../catalog/count-tokens.ts';
import { shorten } from '../../platform/runtime/shorten.ts';
import { isWellFormed } from '../../platform/runtime/surrogate-check.ts';
import { Utf8Check } from '../../encoding/utf8-check.ts';
import { reasonTexts, writeReason } from '../../contract/reason-texts.ts';
import type { FileVerdict, LineFault } from './file-verdict.ts';
import { byteOrderMark } from './byte-order-mark.ts';
import { CustomIds } from './custom-ids.ts';
import { isBlank } from './line-buffer.ts';
import type { LineFacts } from './line-facts.ts';
import { LineGroups } from './line-groups.ts';
import { LongLine } from './long-line.ts';
import { readShortLine } from './read-short-line.ts';

/** A line up to this length is parsed in one go. */
const maxShortBytes = 64 * 1024;
/** After that many faults, the rest of a file is not checked. */
const maxFaults = 50;
const maxUrls = 8;
const maxUrlChars = 200;
const maxIdChars = 512;
/** How many characters of a file's texts are tokenized. The tokens of the others are estimated. */
const maxCountedChars = 2_000_000;

const lineFeed = 0x0a;

export interface CheckOptions {
  readonly maxLines: number;
  /** In which event-loop turns the file is checked. */
  readonly turn: CountingTurn;
}

/**
 * Checks the input of a batch as it arrives: JSON Lines, each an object with a `custom_id` of its own and a `body`. Takes
 * time in proportion to the file, and memory for a short line and for the hashes of the ids.
 */
export class JsonlChecker {
  readonly #maxLines: number;
  readonly #turn: CountingTurn;
  readonly #faults: LineFault[] = [];
  readonly #ids = new CustomIds();
  readonly #groups = new LineGroups();
  readonly #urls = new Map<string, number>();
  /** Bytes of the byte order mark at the start of the file so far. */
  #markBytes = 0;
  /** The number of the current line, blank ones included. */
  #line = 1;
  /** Lines that are not blank. */
  #lines = 0;
  /** The start of a short line that continues in the next chunk. */
  #partial = Buffer.allocUnsafeSlow(maxShortBytes);
  #partialBytes = 0;
  #long: { readonly line: LongLine; readonly utf8: Utf8Check; isInvalid: boolean } | null = null;
  #countedChars = 0;
  #hasExplained = false;
  #isStopped = false;

  constructor({ maxLines, turn }: CheckOptions) {
    this.#maxLines = maxLines;
    this.#turn = turn;
  }

  /** Wait for the promise before the next call. Does not keep the chunk. */
  async push(chunk: Buffer): Promise<void> {
    let at = this.#markBytes < byteOrderMark.length ? await this.#skipMark(chunk) : 0;
    while (at < chunk.length && !this.#isStopped) {
      const found = chunk.indexOf(lineFeed, at);
      const piece = chunk.subarray(at, found === -1 ? chunk.length : found);
      if (found === -1) await this.#addPiece(piece);
      else await this.#endLine(piece);
      at += piece.length + 1;
      if (this.#turn.spend(0)) await this.#turn.next();
    }
  }

  async end(): Promise<FileVerdict> {
    if (this.#markBytes < byteOrderMark.length) await this.#endMark();
    if (!this.#isStopped && (this.#partialBytes > 0 || this.#long !== null))
      await this.#endLine(Buffer.alloc(0));
    if (this.#lines === 0 && this.#faults.length === 0)
      this.#addFault('empty_file', null, reasonTexts.emptyFile.en);
    return {
      lines: this.#lines,
      faults: this.#faults,
      urls: [...this.#urls].map(([url, line]) => ({ url, line })),
      ...this.#groups.end(),
    };
  }

  /** @returns the offset of the first byte that is not skipped */
  async #skipMark(chunk: Buffer): Promise<number> {
    let at = 0;
    while (at < chunk.length && chunk[at] === byteOrderMark[this.#markBytes]) {
      this.#markBytes += 1;
      at += 1;
    }
    if (at < chunk.length && this.#markBytes < byteOrderMark.length) await this.#endMark();
    return at;
  }

  /** Bytes that only began like a mark belong to the first line. */
  async #endMark(): Promise<void> {
    const begun = byteOrderMark.subarray(0, this.#markBytes);
    this.#markBytes = byteOrderMark.length;
    await this.#addPiece(begun);
  }

  async #addPiece(piece: Buffer): Promise<void> {
    if (this.#long === null && this.#partialBytes + piece.length > maxShortBytes) await this.#becomeLong();
    if (this.#long === null) this.#partialBytes += piece.copy(this.#partial, this.#partialBytes);
    else await this.#readLong(piece);
  }

  async #becomeLong(): Promise<void> {
    this.#long = { line: new LongLine(), utf8: new Utf8Check(), isInvalid: false };
    await this.#readLong(this.#partial.subarray(0, this.#partialBytes));
    this.#partialBytes = 0;
  }

  async #readLong(piece: Buffer): Promise<void> {
    const { line, utf8, isInvalid } = this.#long!;
    if (isInvalid) return;
    // In pieces, so that no more of its texts is in memory than of a short line.
    for (let at = 0; at < piece.length; at += maxShortBytes) {
      const part = piece.subarray(at, at + maxShortBytes);
      if (utf8.push(part) >= 0) {
        this.#long!.isInvalid = true;
        return;
      }
      line.push(part);
      await this.#countTexts(line.facts);
      if (this.#turn.spend(0)) await this.#turn.next();
    }
  }

  /** @param piece the rest of the line */
  async #endLine(piece: Buffer): Promise<void> {
    if (this.#long !== null || this.#partialBytes + piece.length > maxShortBytes) {
      await this.#addPiece(piece);
      this.#endLong();
    } else if (this.#partialBytes === 0) await this.#readShort(piece);
    else {
      this.#partialBytes += piece.copy(this.#partial, this.#partialBytes);
      await this.#readShort(this.#partial.subarray(0, this.#partialBytes));
      this.#partialBytes = 0;
    }
    this.#line += 1;
  }

  #endLong(): void {
    const { line, utf8, isInvalid } = this.#long!;
    this.#long = null;
    if (isInvalid || utf8.end() >= 0) {
      if (this.#startLine()) this.#addInvalid(notUtf8);
      return;
    }
    const problem = line.end();
    if (line.isBlank || !this.#startLine()) return;
    if (problem === null) this.#addLine(line.facts);
    else this.#addInvalid(problem);
  }

  async #readShort(bytes: Buffer): Promise<void> {
    if (isBlank(bytes) || !this.#startLine()) return;
    if (!isUtf8(bytes)) {
      this.#addInvalid(notUtf8);
      return;
    }
    const text = bytes.toString('utf8');
    const facts = parseLine(text);
    if (facts === 'invalid') this.#addInvalid(this.#explainInvalid(text));
    else if (facts === null) this.#addInvalid(reasonTexts.lineIsNotObject.en);
    else {
      await this.#countTexts(facts);
      this.#addLine(facts);
    }
  }

  /** Counts a line. @returns whether it is within the limit */
  #startLine(): boolean {
    if (this.#lines < this.#maxLines) {
      this.#lines += 1;
      return true;
    }
    const { en: msg } = writeReason('tooManyLines', { count: this.#maxLines });
    this.#addFault('too_many_tasks', this.#line, msg);
    this.#isStopped = true;
    return false;
  }

  async #countTexts({ body }: LineFacts): Promise<void> {
    for (const field of Object.values(body?.fields ?? {})) {
      const { texts } = field;
      if (texts.length === 0) continue;
      field.texts = [];
      for (const text of texts) {
        field.characters += text.length;
        if (this.#countedChars >= maxCountedChars) continue;
        this.#countedChars += text.length;
        field.countedCharacters += text.length;
        field.countedTokens += (await countTokensAsync(text, { limit: Infinity, turn: this.#turn })) ?? 0;
      }
    }
  }

  #addLine({ custom_id: id, method, url, body }: LineFacts): void {
    this.#checkId(id);
    if (method !== undefined && method !== null && method !== 'POST')
      this.#addInvalid(reasonTexts.lineMethod.en, 'method');
    if (typeof url === 'string') this.#addUrl(shorten(url, maxUrlChars));
    else if (url !== undefined && url !== null) this.#addInvalid(reasonTexts.lineUrl.en, 'url');
    if (!body) this.#addInvalid(reasonTexts.lineBody.en, 'body');
    this.#groups.add(body ?? null);
  }

  #checkId(id: unknown): void {
    if (id === undefined || id === null || id === '') {
      this.#addFault('missing_custom_id', this.#line, reasonTexts.noCustomId.en, 'custom_id');
      return;
    }
    if (typeof id !== 'string' || id.length > maxIdChars || !isWellFormed(id)) {
      const { en: msg } = writeReason('wrongCustomId', { max: maxIdChars });
      this.#addFault('missing_custom_id', this.#line, msg, 'custom_id');
      return;
    }
    const first = this.#ids.add(id, this.#line);
    if (first === null) return;
    const { en: msg } = writeReason('sameCustomId', { line: first, id: JSON.stringify(shorten(id, 100)) });
    this.#addFault('duplicate_custom_id', this.#line, msg, 'custom_id');
  }

  #addUrl(url: string): void {
    if (!this.#urls.has(url) && this.#urls.size < maxUrls) this.#urls.set(url, this.#line);
  }

  /** Only the first time: the faults are kept with the file, and the others are usually alike. */
  #explainInvalid(text: string): string {
    if (this.#hasExplained) return reasonTexts.lineIsNotJson.en;
    this.#hasExplained = true;
    return writeReason('lineIsNotJsonWhy', { reason: findReason(text) }).en;
  }

  #addInvalid(message: string, param: string | null = null): void {
    this.#addFault('invalid_json_line', this.#line, message, param);
  }

  #addFault(
    code: LineFault['code'],
    line: number | null,
    message: string,
    param: string | null = null,
  ): void {
    if (this.#faults.length < maxFaults) this.#faults.push({ code, line, message, param });
    if (this.#faults.length >= maxFaults) this.#isStopped = true;
  }
}

const { en: notUtf8 } = reasonTexts.lineIsNotUtf8;

function parseLine(text: string): LineFacts | null | 'invalid' {
  try {
    return readShortLine(text);
  } catch (error) {
    if (error instanceof SyntaxError) return 'invalid';
    throw error;
  }
}

/** The parser quotes the text around the fault. */
const maxReasonChars = 200;

function findReason(text: string): string {
  try {
    JSON.parse(text);
    return '';
  } catch (error) {
    const reason = (error as Error).message.replace(/ is not valid JSON$/, '');
    return `: ${shorten(reason, maxReasonChars)}`;
  }
}
