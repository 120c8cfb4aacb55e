import { decodeFacts, type RequestFacts } from '../../../shared/work/replies/request-facts.ts';

interface Expected {
  readonly onFacts: (facts: RequestFacts) => void;
  /** Set once the caller has left: called when no facts will arrive any more. */
  onEnd: (() => void) | null;
  timer: NodeJS.Timeout | null;
}

/** How long the facts of a request are waited for after its caller has left. */
const maxLateMs = 60_000;

/** Passes on what workers did for the requests of this process. */
export class FactsInbox {
  readonly #expected = new Map<string, Expected>();

  /** Expects the facts of a request until `forget` or `awaitLate` is called. */
  expect(requestId: string, onFacts: (facts: RequestFacts) => void): void {
    this.#expected.set(requestId, { onFacts, onEnd: null, timer: null });
  }

  /** Call this when there will be no facts, or nobody wants them. Ends the wait if the caller has left. */
  forget(requestId: string): void {
    this.end(requestId);
    this.#expected.delete(requestId);
  }

  /**
   * Waits for the facts of a request whose caller has left: its worker tells them when it has settled the request.
   * @param onEnd called once: after the facts, or when none will arrive
   */
  awaitLate(requestId: string, onEnd: () => void): void {
    const expected = this.#expected.get(requestId);
    if (expected === undefined) {
      onEnd();
      return;
    }
    expected.onEnd = onEnd;
    expected.timer = setTimeout(() => this.end(requestId), maxLateMs);
    expected.timer.unref();
  }

  /** Takes the payload of a `facts` frame. */
  receive(requestId: string, payload: Buffer): void {
    const expected = this.#expected.get(requestId);
    if (expected === undefined) return;
    expected.onFacts(decodeFacts(payload));
    if (expected.onEnd !== null) this.end(requestId);
  }

  /** No more frames of the request will arrive. */
  end(requestId: string): void {
    const expected = this.#expected.get(requestId);
    if (expected === undefined || expected.onEnd === null) return;
    this.#expected.delete(requestId);
    if (expected.timer !== null) clearTimeout(expected.timer);
    expected.onEnd();
  }

  /** Ends all waits, because this process stops. */
  close(): void {
    for (const requestId of this.#expected.keys()) this.end(requestId);
  }
}
