/**
 * Redis disconnects a subscriber with 32 MB pending, which ends every stream of its api process. So that one account
 * cannot end the streams of others, each worker never has more than this in flight to one api process.
 */
const windowBytes = 2 * 1024 * 1024;
/**
 * Maximum bytes of one response until the api process is known to have received the first of them. If its client reads
 * slowly, the api process says so as soon as it receives something, and until then it must hold what has been sent.
 */
const burstBytes = 256 * 1024;
/** Each time this many bytes have been sent, the api process is asked to acknowledge what it has received. */
const markEveryBytes = burstBytes / 2;
/** If an acknowledgement takes longer, it was lost, or the process is gone, which is detected elsewhere. */
const ackTimeoutMs = 2_000;

/** The bytes of one response since the api process is known to have received everything before them. */
export interface Burst {
  /** The window that `start` is a position of. Null until the first bytes. */
  window: ChannelWindow | null;
  /** How many bytes had been sent to the channel before it. */
  start: number;
  bytes: number;
}

export const createBurst = (): Burst => ({ window: null, start: 0, bytes: 0 });

interface Wait {
  readonly isOver: () => boolean;
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
  #isClosed = false;
  readonly #waits = new Set<Wait>();

  /** Adds bytes of a response that will be sent at the end of this event loop turn. */
  queue(bytes: number, burst: Burst): void {
    if (this.#hasReceivedStart(burst)) {
      burst.window = this;
      burst.start = this.#queuedBytes + this.#sentBytes;
      burst.bytes = 0;
    }
    burst.bytes += bytes;
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

  /** Records that everything up to this mark has been received. A mark of an earlier window of the channel is higher. */
  acknowledge(mark: number): void {
    if (mark > this.#sentBytes) return;
    this.#receivedBytes = Math.max(this.#receivedBytes, mark);
    for (const wait of this.#waits) if (wait.isOver()) wait.open();
  }

  /** Ends all waits, because nobody listens to the channel: nothing will be acknowledged, and nothing is in flight. */
  close(): void {
    this.#isClosed = true;
    for (const wait of this.#waits) wait.open();
  }

  /** Returns null if more of the response may be sent now; otherwise a promise that resolves when it may. */
  whenWritable(burst: Burst): Promise<void> | null {
    const isOver = (): boolean =>
      this.#isClosed || (this.#isOpen && (burst.bytes < burstBytes || this.#hasReceivedStart(burst)));
    return isOver() ? null : this.#wait(isOver);
  }

  get #isOpen(): boolean {
    return this.#queuedBytes + this.#sentBytes - this.#receivedBytes < windowBytes;
  }

  #hasReceivedStart({ window, start }: Burst): boolean {
    return window !== this || this.#receivedBytes > start;
  }

  async #wait(isOver: () => boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const open = (): void => {
        clearTimeout(timer);
        this.#waits.delete(wait);
        resolve();
      };
      const timer = setTimeout(() => {
        this.acknowledge(this.#sentBytes);
        open();
      }, ackTimeoutMs);
      const wait: Wait = { isOver, open };
      this.#waits.add(wait);
    });
  }
}
