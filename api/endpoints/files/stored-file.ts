import { AppError } from '../../../shared/contract/errors.ts';
import type { AcquireOptions } from '../../../shared/fairness/fair-budget.ts';
import type { ObjectMetadata } from '../../../shared/platform/storage/object-store.ts';
import type { Services } from '../../services.ts';
import type { RangeSource } from './open-range.ts';

/** An object store that takes longer for a range is considered down. */
const rangeTimeoutMs = 30_000;

/** Who reads a file, and how long. */
export interface FileReading {
  /** The network or account that takes turns with the others. */
  readonly holder: string;
  /** The wait limit for an object store slot, and a signal that aborts when the caller disconnects. */
  readonly options: AcquireOptions;
}

/**
 * One file in the object store, read for one caller. Reads wait for object store slots, which are shared fairly among
 * networks and accounts.
 */
export class StoredFile implements RangeSource {
  readonly #services: Pick<Services, 'objects' | 'downloadReads'>;
  readonly #key: string;
  readonly #reading: FileReading;

  constructor(services: Pick<Services, 'objects' | 'downloadReads'>, key: string, reading: FileReading) {
    this.#services = services;
    this.#key = key;
    this.#reading = reading;
  }

  createMissingError(): AppError {
    return missingFile();
  }

  /** @throws AppError if the file no longer exists */
  async describe(): Promise<ObjectMetadata> {
    const metadata = await this.#withSlot((signal) => this.#services.objects.describe(this.#key, signal));
    if (metadata === null) throw missingFile();
    return metadata;
  }

  read(at: number, target: Buffer): Promise<number | null> {
    return this.#withSlot(async (signal) => {
      const read = await this.#services.objects.readRange(this.#key, at, target, signal);
      if (read === null) return null;
      const expected = Math.min(target.length, read.objectBytes - at);
      if (read.byteLength < expected) throw new Error('the object store sent fewer bytes than announced');
      return read.objectBytes;
    });
  }

  async #withSlot<T>(read: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { holder, options } = this.#reading;
    const caller = options.signal!;
    const slot = await this.#services.downloadReads.acquire(holder, 1, options);
    try {
      return await read(AbortSignal.any([caller, AbortSignal.timeout(rangeTimeoutMs)]));
    } catch (error) {
      caller.throwIfAborted();
      throw new AppError('service_unavailable', { cause: error });
    } finally {
      slot.release();
    }
  }
}

export const missingFile = (): AppError =>
  new AppError('not_found', {
    message:
      'This file does not exist or has expired. Files are stored for 24 hours: generate the image again.',
  });
