/**
 * Redis disconnects a subscriber with 32 MB pending, which ends every stream of its api process: one account's streams
 * could end everyone's. Each worker therefore never has more than this in flight to one api process.
 */
const windowBytes = 2 * 1024 * 1024;
/** How often the api process is asked to acknowledge what it has received. */
const markEveryBytes = 256 * 1024;
/** An acknowledgement missing for this long was lost, or the process is gone, which is detected elsewhere. */
const lostAfterMs = 2_000;

interface Room {
  readonly opens: Promise<void>;
  readonly open: () => void;
}

/** Flow control from one worker to one api process. */
export class ChannelWindow {
  /**
   * Bytes to be sent at the end of this event loop turn. A vendor's connection alone may deliver megabytes in one turn.
   */
  #queuedBytes = 0;
  #sentBytes = 0;
  #markedBytes = 0;
  #receivedBytes = 0;
  #room: Room | null = null;

  /** Counts bytes that will be sent at the end of this turn. */
  queue(bytes: number): void {
    this.#queuedBytes += bytes;
  }

  /** Records that the queued bytes were sent, and how many. @returns the mark to send after them, if one is due */
  send(bytes: number): number | null {
    this.#queuedBytes = 0;
    this.#sentBytes += bytes;
    if (this.#sentBytes - this.#markedBytes < markEveryBytes) return null;
    this.#markedBytes = this.#sentBytes;
    return this.#markedBytes;
  }

  /** Everything up to this mark has been received. */
  acknowledge(mark: number): void {
    this.#receivedBytes = Math.max(this.#receivedBytes, mark);
    if (this.#hasRoom) this.#room?.open();
  }

  /** Null if more may be sent now; otherwise a promise that resolves when it may. */
  whenRoom(): Promise<void> | null {
    if (this.#hasRoom) return null;
    this.#room ??= this.#createRoom();
    return this.#room.opens;
  }

  get #hasRoom(): boolean {
    return this.#queuedBytes + this.#sentBytes - this.#receivedBytes < windowBytes;
  }

  #createRoom(): Room {
    let resolve = (): void => undefined;
    const opens = new Promise<void>((done) => {
      resolve = done;
    });
    const timer = setTimeout(() => this.acknowledge(this.#sentBytes), lostAfterMs);
    const open = (): void => {
      clearTimeout(timer);
      this.#room = null;
      resolve();
    };
    return { opens, open };
  }
}
