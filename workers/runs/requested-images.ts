/**
 * Counts the images that were requested from a vendor, which it may bill. A job that is cancelled before its images
 * arrive is charged for them.
 */
export class RequestedImages {
  #imagesPerCall = 0;
  #calls = 0;
  #sinceMs: number | null = null;

  /** Starts counting for the chosen route. */
  begin(imagesPerCall: number): void {
    this.#imagesPerCall = imagesPerCall;
    this.#calls = 0;
    this.#sinceMs = performance.now();
  }

  recordSent(): void {
    this.#calls += 1;
  }

  /** Removes one call from the count, because the vendor does not bill it. */
  recordRejected(): void {
    this.#calls -= 1;
  }

  /** Records that all calls through the route have failed, and none is still running at the vendor. */
  recordFailed(): void {
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

  /** Milliseconds since `begin`. */
  get elapsedMs(): number {
    return this.#sinceMs === null ? 0 : performance.now() - this.#sinceMs;
  }
}
