// decision 0065
import type { ServerResponse } from 'node:http';
import { onProbe } from '../../http/callers/probe-callers.ts';

/** How long a stream may be silent before its first comment: short, so that a waiting caller sees that it is connected. */
export const defaultFirstCommentMs = 1_900;
/** Further comments keep proxies from closing the connection: one at least every ten seconds. */
const furtherCommentMs = 9_500;

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  // Stops nginx from buffering the events.
  'x-accel-buffering': 'no',
};

const eventEnd = '\n\n';
/** A comment is a single line, because some clients take a blank line after it for the end of an empty event. */
const commentOf = (text: string): string => `:${text}\n`;

/**
 * A response of server-sent events. Writes comments while it is silent, and never inside an event, which may be written
 * in several parts.
 */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #describeSilence: () => string | null;
  readonly #firstCommentMs: number;
  #timer: NodeJS.Timeout;
  #lastWriteMs = performance.now();
  #wasComment = false;
  /** The last bytes written, which show whether an event is complete. */
  #end = eventEnd;
  #isClosed = false;

  /** @param describeSilence returns the text of a comment; null for no comment now */
  constructor(
    response: ServerResponse,
    firstCommentMs: number,
    describeSilence: () => string | null = () => 'keep-alive',
  ) {
    this.#response = response;
    this.#firstCommentMs = firstCommentMs;
    this.#describeSilence = describeSilence;
    this.#timer = setTimeout(() => this.#checkSilence(), firstCommentMs);
    onProbe(response, () => {
      if (!this.#isClosed && !this.isMidEvent && response.headersSent) response.write(commentOf(''));
    });
  }

  /** Whether the last event is incomplete. */
  get isMidEvent(): boolean {
    return this.#end !== eventEnd;
  }

  /** Writes part of an event, or several events. @returns whether the socket has taken everything */
  write(data: Buffer | string): boolean {
    this.#wasComment = false;
    this.#end = (this.#end + endOf(data)).slice(-eventEnd.length);
    return this.#write(data);
  }

  /** Sends the status line and the headers, unless they have been sent. */
  start(): void {
    if (!this.#response.headersSent) this.#response.writeHead(200, headers);
  }

  /** Ends an event that was written in part, so that another can follow. */
  completeEvent(): void {
    if (this.isMidEvent) this.write(eventEnd);
  }

  /** Stops the comments. Call this at the end, or before something else writes to the response. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  get #silenceLimitMs(): number {
    return this.#wasComment ? furtherCommentMs : this.#firstCommentMs;
  }

  #write(data: Buffer | string): boolean {
    this.#lastWriteMs = performance.now();
    this.start();
    return this.#response.write(data);
  }

  #checkSilence(): void {
    const remainingMs = this.#lastWriteMs + this.#silenceLimitMs - performance.now();
    if (remainingMs <= 0) this.#comment();
    if (this.#isClosed) return;
    this.#timer = setTimeout(
      () => this.#checkSilence(),
      remainingMs > 0 ? remainingMs : this.#silenceLimitMs,
    );
  }

  #comment(): void {
    const text = this.isMidEvent ? null : this.#describeSilence();
    if (text === null) return;
    this.#wasComment = true;
    this.#write(commentOf(` ${text}`));
  }
}

function endOf(data: Buffer | string): string {
  if (typeof data === 'string') return data.slice(-eventEnd.length);
  return data.toString('latin1', Math.max(0, data.length - eventEnd.length));
}
