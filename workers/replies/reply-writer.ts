import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import { maxInlineBytes } from '../../shared/work/queue/payload-limits.ts';
import type { ErrorPayload } from '../../shared/work/replies/error-payload.ts';
import { encodeHeader, encodeOffer, packRequestId, type FrameKind } from '../../shared/work/replies/frame.ts';
import { encodeFacts, type RequestFacts } from '../../shared/work/replies/request-facts.ts';
import { encodeStored, type StoredResponse } from '../../shared/work/replies/response-store.ts';
import type { StoredRequest } from '../../shared/work/replies/stored-frames-store.ts';
import { createBurst } from './channel-window.ts';
import type { PendingFrame, ReplyPublisher } from './reply-publisher.ts';

/** A UTF-16 code unit takes at most three bytes in UTF-8, so text of this length takes at most `maxInlineBytes`. */
const maxDeltaCharacters = maxInlineBytes / 3;

const eventEnd = '\n\n';

/** Writes the frames of one attempt at a request, numbered in the order in which they are sent. */
export class ReplyWriter {
  readonly #publisher: ReplyPublisher;
  readonly #channel: string;
  readonly #packedId: Uint8Array;
  readonly #attempt: number;
  readonly #storedAs: StoredRequest | null;
  readonly #burst = createBurst();
  #sequence = 0;
  #lastDelta: PendingFrame | null = null;

  constructor(
    publisher: ReplyPublisher,
    channel: string,
    request: Pick<AdmittedRequest, 'requestId' | 'accountId' | 'claimHash' | 'isResumable'>,
    attempt: number,
  ) {
    this.#publisher = publisher;
    this.#channel = channel;
    this.#packedId = packRequestId(request.requestId);
    this.#storedAs = findStoredAs(request);
    this.#attempt = attempt;
  }

  accepted(workerId: string): void {
    this.#send('accepted', workerId);
  }

  /** Returns null while the waiting process keeps up; otherwise a promise that resolves when more may be sent to it. */
  whenWritable(): Promise<void> | null {
    return this.#publisher.whenWritable(this.#channel, this.#burst);
  }

  /**
   * Waits until Redis has shown that the waiting process is connected, or the signal is aborted; null if Redis has shown
   * it within the last second.
   */
  whenConfirmed(signal: AbortSignal): Promise<void> | null {
    return this.#publisher.whenConfirmed(this.#channel, signal);
  }

  /** Deltas of one tick share a frame, so text that a vendor sent together reaches the caller together. */
  delta(text: string, tokens: number): void {
    if (text.length > maxDeltaCharacters) {
      this.#longDelta(text, tokens);
      return;
    }
    const last = this.#lastDelta;
    if (last !== null && !last.sealed && last.payload.length + text.length <= maxDeltaCharacters) {
      last.payload += text;
      last.tokens = tokens;
      this.#publisher.grow(this.#channel, text.length, this.#burst);
      return;
    }
    this.#lastDelta = this.#send('delta', text, tokens);
  }

  /** Sends a long text in several frames, which end with an event unless a single event is longer than a frame. */
  #longDelta(text: string, tokens: number): void {
    this.#lastDelta = null;
    let rest = text;
    while (rest.length > maxDeltaCharacters) {
      const lastEnd = rest.lastIndexOf(eventEnd, maxDeltaCharacters - eventEnd.length);
      const firstEnd = lastEnd === -1 ? rest.indexOf(eventEnd) : lastEnd;
      const length = firstEnd === -1 ? rest.length : firstEnd + eventEnd.length;
      const bytes = Buffer.from(rest.slice(0, length));
      for (let at = 0; at < bytes.length; at += maxInlineBytes)
        this.#send('delta', bytes.subarray(at, at + maxInlineBytes), tokens);
      rest = rest.slice(length);
    }
    if (rest !== '') this.#lastDelta = this.#send('delta', rest, tokens);
  }

  result(bytes: Buffer): void {
    this.#send('result', bytes);
  }

  stored(stored: StoredResponse): void {
    this.#send('stored', encodeStored(stored));
  }

  /** Announces that a result of this many bytes can be requested. */
  offered(length: number): void {
    this.#send('offered', encodeOffer(length));
  }

  /**
   * Prepares a piece that may be sent several times. A receiver that already has it ignores it.
   * @returns a function that sends it; it throws errors of the Redis client if the piece may not have been sent
   */
  piece(parts: readonly Buffer[]): () => Promise<void> {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const numbers = { attempt: this.#attempt, sequence: this.#sequence++, kind: 'piece', tokens: 0 } as const;
    const frame = [encodeHeader(this.#packedId, numbers, length), ...parts];
    return () => this.#publisher.sendPiece(this.#channel, frame);
  }

  /** Not numbered and not stored: it does not belong to the response. */
  facts(facts: RequestFacts): void {
    this.#publisher.send(
      this.#channel,
      {
        storedAs: null,
        packedId: this.#packedId,
        attempt: this.#attempt,
        sequence: 0,
        kind: 'facts',
        tokens: 0,
        payload: encodeFacts(facts),
        sealed: false,
      },
      this.#burst,
    );
  }

  error(error: ErrorPayload): void {
    this.#send('error', JSON.stringify(error));
  }

  #send(kind: FrameKind, payload: Buffer | string, tokens = 0): PendingFrame {
    const frame: PendingFrame = {
      storedAs: this.#storedAs,
      packedId: this.#packedId,
      attempt: this.#attempt,
      sequence: this.#sequence++,
      kind,
      tokens,
      payload,
      sealed: false,
    };
    this.#publisher.send(this.#channel, frame, this.#burst);
    return frame;
  }
}

/** Returns null if the frames are not stored. The response of a durable job is stored separately. */
function findStoredAs({
  requestId,
  accountId,
  claimHash,
  isResumable,
}: Pick<AdmittedRequest, 'requestId' | 'accountId' | 'claimHash' | 'isResumable'>): StoredRequest | null {
  // Under an Idempotency-Key, a response is stored for longer than a resumable one.
  if (claimHash !== null) return { requestId, accountId };
  return isResumable === true ? { requestId, accountId, isResumable } : null;
}
