import { claimLifetimeSeconds } from '../billing/claim.ts';
import { AppError } from '../contract/errors.ts';
import type { PayloadStore } from '../queue/payload-store.ts';
import type { ObjectStore } from '../storage/object-store.ts';

const inObjects = 'object:';
const inPayloads = 'kept:';

/**
 * Answers that are kept for a day and are too large for a frame. They lie in the object store, so that Redis's memory
 * does not hold the answers of a day.
 */
export class AnswerStore {
  readonly #payloads: PayloadStore;
  readonly #objects: ObjectStore;

  constructor(payloads: PayloadStore, objects: ObjectStore) {
    this.#payloads = payloads;
    this.#objects = objects;
  }

  /** @returns where it is, for `read` */
  async put(requestId: string, bytes: Buffer): Promise<string> {
    const key = `answers/${requestId}`;
    try {
      await this.#objects.put(key, bytes, 'application/octet-stream');
      return `${inObjects}${key}`;
    } catch {
      // The answer was paid for; while the object store is away Redis keeps it.
      const id = `${requestId}:result`;
      await this.#payloads.put(id, bytes, claimLifetimeSeconds);
      return `${inPayloads}${id}`;
    }
  }

  /**
   * Null where it is gone.
   * @throws AppError `service_unavailable` while its store is away
   */
  async read(place: string): Promise<Buffer | null> {
    return place.startsWith(inObjects)
      ? await this.#readObject(place.slice(inObjects.length))
      : await this.#payloads.get(place.slice(inPayloads.length));
  }

  async #readObject(key: string): Promise<Buffer | null> {
    try {
      const found = await this.#objects.get(key);
      if (found === null) return null;
      const chunks: Buffer[] = [];
      for await (const chunk of found.body as AsyncIterable<Buffer>) chunks.push(chunk);
      return Buffer.concat(chunks);
    } catch (error) {
      throw new AppError('service_unavailable', { cause: error });
    }
  }
}
