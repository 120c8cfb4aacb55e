/**
 * Redis cuts a subscriber for which 32 MB wait, and with it every stream of its api process: one account's streams could
 * end everybody's. Each worker therefore has no more than this on its way to one api process.
 */
const windowBytes = 2 * 1024 * 1024;
/** How often the api process is asked to say what it has received. */
const markEveryBytes = 256 * 1024;
/** An acknowledgement that does not come so long was lost, or the process is gone, which is noticed elsewhere. */
const lostAfterMs = 2_000;

interface Room {
  readonly opens: Promise<void>;
  readonly open: () => void;
}

/** What one worker has on its way to one api process. */
export class ChannelWindow {
  /** Waits for the end of this turn of the event loop, in which a vendor's connection alone may bring megabytes. */
  #queuedBytes = 0;
  #sentBytes = 0;
  #markedBytes = 0;
  #receivedBytes = 0;
  #room: Room | null = null;

  /** Notes what will be sent at the end of this turn. */
  queue(bytes: number): void {
    this.#queuedBytes += bytes;
  }

  /** Notes that what was queued has been sent, and how much that was. @returns the mark to be sent after it, where one is due */
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

  /** Null where more may be sent, else what resolves when it may. */
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
