/**
 * The images that a vendor was asked for and may charge. They are the cost of a job that is cancelled before
 * its images arrive.
 */
export class AskedImages {
  #imagesPerCall = 0;
  #calls = 0;
  #sinceMs: number | null = null;

  /** Starts counting for the chosen route. */
  begin(imagesPerCall: number): void {
    this.#imagesPerCall = imagesPerCall;
    this.#calls = 0;
    this.#sinceMs = performance.now();
  }

  noteSent(): void {
    this.#calls += 1;
  }

  /** Takes back one call, because the vendor does not charge for it. */
  noteRefused(): void {
    this.#calls -= 1;
  }

  /** Records that all calls through the route have failed, and none still runs at the vendor. */
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

  /** How long the route has been working so far. */
  get elapsedMs(): number {
    return this.#sinceMs === null ? 0 : performance.now() - this.#sinceMs;
  }
}
