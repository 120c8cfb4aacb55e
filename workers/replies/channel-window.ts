/**
 * Redis disconnects a subscriber with 32 MB pending, which ends every stream of its api process. So that one account
 * cannot end the streams of others, each worker never has more than this in flight to one api process.
 */
const windowBytes = 2 * 1024 * 1024;
/** Each time this many bytes have been sent, the api process is asked to acknowledge what it has received. */
const markEveryBytes = 256 * 1024;
/** If an acknowledgement takes longer, it was lost, or the process is gone, which is detected elsewhere. */
const ackTimeoutMs = 2_000;

interface Wait {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

/** Flow control from one worker to one api process. */
export class ChannelWindow {
  /** When Redis last showed that the channel has listeners. */
  confirmedAtMs = -Infinity;
  /**
   * Bytes to be sent at the end of this event loop turn. A single vendor connection may deliver megabytes in one turn.
   */
  #queuedBytes = 0;
  #sentBytes = 0;
  #markedBytes = 0;
  #receivedBytes = 0;
  #wait: Wait | null = null;

  /** Adds bytes that will be sent at the end of this event loop turn. */
  queue(bytes: number): void {
    this.#queuedBytes += bytes;
  }

  /**
   * Records that the queued bytes were sent.
   * @param bytes how many
   * @returns the mark to send after them, if one is due
   */
  send(bytes: number): number | null {
    this.#queuedBytes = 0;
    this.#sentBytes += bytes;
    if (this.#sentBytes - this.#markedBytes < markEveryBytes) return null;
    this.#markedBytes = this.#sentBytes;
    return this.#markedBytes;
  }

  /** Records that everything up to this mark has been received. */
  acknowledge(mark: number): void {
    this.#receivedBytes = Math.max(this.#receivedBytes, mark);
    if (this.#isOpen) this.#wait?.open();
  }

  /** Returns null if more may be sent now; otherwise a promise that resolves when it may. */
  whenWritable(): Promise<void> | null {
    if (this.#isOpen) return null;
    this.#wait ??= this.#createWait();
    return this.#wait.opened;
  }

  get #isOpen(): boolean {
    return this.#queuedBytes + this.#sentBytes - this.#receivedBytes < windowBytes;
  }

  #createWait(): Wait {
    let resolve = (): void => undefined;
    const opened = new Promise<void>((done) => {
      resolve = done;
    });
    const timer = setTimeout(() => this.acknowledge(this.#sentBytes), ackTimeoutMs);
    const open = (): void => {
      clearTimeout(timer);
      this.#wait = null;
      resolve();
    };
    return { opened, open };
  }
}
