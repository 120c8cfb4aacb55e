import { maxParts, type MultipartClient } from './multipart-client.ts';

/** Size of all parts but the last; the smallest that S3 allows. */
export const partBytes = 5 * 1024 * 1024;

export interface UploadTarget {
  readonly parts: Pick<MultipartClient, 'putPart' | 'complete' | 'abort'>;
  /** Stores the whole object at once. */
  readonly put: (body: Buffer, signal: AbortSignal) => Promise<void>;
  /** Deletes the object. */
  readonly delete: () => Promise<void>;
}

/**
 * An object that is written piece by piece while its length is not known yet. One part fills while the previous one is
 * sent, so it needs the memory of two parts, whatever the object's size. An object of at most one part is stored by a
 * plain put.
 *
 * All methods throw the errors of `ObjectStore.put`. After an error the upload cannot be continued: call `abort`. An
 * upload must end within a day; then its parts are deleted.
 */
export class ObjectUpload {
  readonly #target: UploadTarget;
  readonly #stopping = new AbortController();
  readonly #signal: AbortSignal;
  #part: Buffer | null = null;
  #filledBytes = 0;
  /** The memory of the part that was sent last. */
  #spare: Buffer | null = null;
  #byteLength = 0;
  readonly #etags: string[] = [];
  #sentParts = 0;
  /** Settles when the last part is stored. */
  #sending: Promise<void> = Promise.resolve();
  #isWriting = false;
  #failure: { readonly error: unknown } | null = null;
  #completing: Promise<void> | null = null;
  #isComplete = false;
  #aborting: Promise<void> | null = null;

  /** @param signal makes the calls in progress and all later ones fail; the caller must still call `abort` */
  constructor(target: UploadTarget, signal?: AbortSignal) {
    this.#target = target;
    const { signal: stopping } = this.#stopping;
    this.#signal = signal === undefined ? stopping : AbortSignal.any([stopping, signal]);
  }

  /**
   * Appends bytes. They are copied, so the caller may reuse the chunk. Wait for the promise, if there is one, before the
   * next call: it resolves when there is memory for more.
   */
  write(chunk: Buffer): void | Promise<void> {
    this.#requireUsable();
    if (this.#filledBytes + chunk.length > partBytes) return this.#run(this.#writeAcross(chunk));
    this.#collect(chunk);
  }

  /** Stores the object. It does not exist before, and is complete then. */
  async complete(): Promise<{ byteLength: number }> {
    this.#requireUsable();
    this.#completing = this.#run(this.#store());
    await this.#completing;
    // The object is deleted by now, or will be.
    this.#requireRunning();
    this.#isComplete = true;
    return { byteLength: this.#byteLength };
  }

  /**
   * Ends the upload and removes what it has stored. Does nothing after `complete` has succeeded. Never throws: what
   * cannot be removed now, because the store is unavailable, is removed by workers or by the bucket's lifecycle rule.
   */
  async abort(): Promise<void> {
    if (this.#isComplete) return;
    this.#aborting ??= this.#remove();
    await this.#aborting;
  }

  async #remove(): Promise<void> {
    this.#stopping.abort();
    // A part that is stored after the upload was aborted may stay. These calls end now, because of the signal.
    await Promise.allSettled([this.#sending, this.#completing]);
    this.#releaseMemory();
    // Failures are not reported: workers and the lifecycle rule remove the rest.
    const ignore = (): void => undefined;
    await this.#target.parts.abort().catch(ignore);
    // The object may have been stored, although the call failed.
    if (this.#completing !== null) await this.#target.delete().catch(ignore);
  }

  /** @throws Error named AbortError, as the store's calls throw it */
  #requireRunning(): void {
    if (!this.#signal.aborted) return;
    const error = new Error('The upload was aborted', { cause: this.#signal.reason });
    throw Object.assign(error, { name: 'AbortError' });
  }

  #requireUsable(): void {
    this.#requireRunning();
    if (this.#failure !== null) throw this.#failure.error;
    if (this.#isWriting) throw new Error('the upload is still writing: wait for the previous call');
    if (this.#completing !== null) throw new Error('the upload is already complete');
  }

  async #run(work: Promise<void>): Promise<void> {
    this.#isWriting = true;
    try {
      await work;
    } catch (error) {
      this.#failure = { error };
      this.#releaseMemory();
      throw error;
    } finally {
      this.#isWriting = false;
    }
  }

  async #writeAcross(chunk: Buffer): Promise<void> {
    for (let rest = chunk; rest.length > 0; rest = rest.subarray(this.#collect(rest))) {
      if (this.#filledBytes === partBytes) await this.#sendPart();
    }
  }

  /** @returns the number of bytes that fitted into the part */
  #collect(chunk: Buffer): number {
    this.#part ??= this.#takeSpare() ?? Buffer.allocUnsafeSlow(partBytes);
    const copied = chunk.copy(this.#part, this.#filledBytes);
    this.#filledBytes += copied;
    this.#byteLength += copied;
    return copied;
  }

  #takeSpare(): Buffer | null {
    const spare = this.#spare;
    this.#spare = null;
    return spare;
  }

  /** Begins to send the current part once the previous one is stored. */
  async #sendPart(): Promise<void> {
    await this.#sending;
    this.#requireRunning();
    if (this.#sentParts === maxParts) throw new RangeError(`an upload has at most ${maxParts} parts`);
    const memory = this.#part!;
    const body = memory.subarray(0, this.#filledBytes);
    this.#part = null;
    this.#filledBytes = 0;
    this.#sentParts += 1;
    this.#sending = this.#storePart(this.#sentParts, body, memory);
    // The next part, or the end of the upload, reports the failure.
    this.#sending.catch(() => undefined);
  }

  async #storePart(partNumber: number, body: Buffer, memory: Buffer): Promise<void> {
    this.#etags.push(await this.#target.parts.putPart(partNumber, body, this.#signal));
    this.#spare = memory;
  }

  async #store(): Promise<void> {
    if (this.#sentParts === 0) {
      await this.#target.put(this.#part?.subarray(0, this.#filledBytes) ?? Buffer.alloc(0), this.#signal);
    } else {
      await this.#sendPart();
      await this.#sending;
      await this.#target.parts.complete(this.#etags, this.#signal);
    }
    this.#releaseMemory();
  }

  #releaseMemory(): void {
    this.#part = null;
    this.#spare = null;
    this.#filledBytes = 0;
  }
}
