/** What a vendor was asked for and may charge: what a job costs that is cancelled before its images are there. */
export class AskedImages {
  #imagesPerCall = 0;
  #calls = 0;
  #sinceMs: number | null = null;

  /** A route was chosen. */
  begin(imagesPerCall: number): void {
    this.#imagesPerCall = imagesPerCall;
    this.#calls = 0;
    this.#sinceMs = performance.now();
  }

  noteSent(): void {
    this.#calls += 1;
  }

  /** The vendor charges nothing for this call. */
  noteRefused(): void {
    this.#calls -= 1;
  }

  /** All calls by the route have failed, and none of them goes on. */
  noteFailed(): void {
    this.#calls = 0;
  }

  get hasBegun(): boolean {
    return this.#sinceMs !== null;
  }

  get calls(): number {
    return this.#calls;
  }

  get images(): number {
    return this.#calls * this.#imagesPerCall;
  }

  /** How long the route has been at it by now. */
  get elapsedMs(): number {
    return this.#sinceMs === null ? 0 : performance.now() - this.#sinceMs;
  }
}
