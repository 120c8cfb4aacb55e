// decision 0064
const eventEnd = '\n\n';

/**
 * Removes from a stream of server-sent events everything up to and including the event with a given id. The stream may
 * be split anywhere. An id is only recognised at the beginning of an event: data never contains a line break.
 */
export class EventSkipper {
  readonly #idLine: string;
  #state: 'searching' | 'in-event' | 'passing';
  /** The end of what was skipped, because a mark may be split. Begins as the end of an event. */
  #carried = eventEnd;

  /** @param lastEventId the last event to skip; null to skip nothing */
  constructor(lastEventId: string | null) {
    this.#idLine = `${eventEnd}id: ${lastEventId ?? ''}\n`;
    this.#state = lastEventId === null ? 'passing' : 'searching';
  }

  /** Whether the event has not arrived yet. */
  get isSearching(): boolean {
    return this.#state === 'searching';
  }

  /** Returns what follows the event; empty until it has ended. */
  take(bytes: Buffer): Buffer {
    if (this.#state === 'passing') return bytes;
    const text = this.#carried + bytes.toString('latin1');
    const skippedLength = this.#carried.length;
    let start = 0;
    if (this.#state === 'searching') {
      const at = text.indexOf(this.#idLine);
      if (at === -1) return this.#carry(text, this.#idLine.length);
      this.#state = 'in-event';
      start = at + this.#idLine.length;
    }
    const end = text.indexOf(eventEnd, start);
    if (end === -1) return this.#carry(text.slice(start), eventEnd.length);
    this.#state = 'passing';
    return bytes.subarray(end + eventEnd.length - skippedLength);
  }

  #carry(text: string, length: number): Buffer {
    this.#carried = text.slice(-length);
    return Buffer.alloc(0);
  }
}
