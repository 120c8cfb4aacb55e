import type { AppError } from '../../../shared/contract/errors.ts';
import type { FileContent, FileSegment } from '../../../shared/work/files/file-record.ts';
import type { Services } from '../../services.ts';
import { noSuchFile } from './find-file.ts';
import type { RangeSource } from './open-range.ts';
import { StoredFile, type FileReading } from './stored-file.ts';

/** A file whose content is that of several objects, one after the other. It has the length that it had when opened. */
export class SegmentedFile implements RangeSource {
  readonly #services: Pick<Services, 'objects' | 'downloadReads'>;
  readonly #reading: FileReading;
  readonly #segments: readonly FileSegment[];
  /** Where each segment begins. */
  readonly #offsets: number[] = [];
  readonly #byteLength: number;

  constructor(
    services: Pick<Services, 'objects' | 'downloadReads'>,
    { segments }: Pick<FileContent, 'segments'>,
    reading: FileReading,
  ) {
    this.#services = services;
    this.#segments = segments;
    this.#reading = reading;
    let offset = 0;
    for (const { byteLength } of segments) {
      this.#offsets.push(offset);
      offset += byteLength;
    }
    this.#byteLength = offset;
  }

  describe(): Promise<{ objectBytes: number }> {
    return Promise.resolve({ objectBytes: this.#byteLength });
  }

  createMissingError(): AppError {
    return noSuchFile();
  }

  async read(at: number, target: Buffer): Promise<number | null> {
    const end = Math.min(this.#byteLength, at + target.length);
    if (at > end || (at === end && this.#byteLength > 0)) return null;
    let from = at;
    for (let i = this.#findSegment(at); from < end; i++) {
      const { key, byteLength } = this.#segments[i]!;
      const offset = from - this.#offsets[i]!;
      const length = Math.min(end - from, byteLength - offset);
      if (length <= 0) continue;
      const object = new StoredFile(this.#services, key, this.#reading);
      // The file has been deleted since it was opened.
      if ((await object.read(offset, target.subarray(from - at, from - at + length))) === null) return null;
      from += length;
    }
    return this.#byteLength;
  }

  /** Finds the last segment that begins at this offset or before. */
  #findSegment(at: number): number {
    let low = 0;
    let high = this.#offsets.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#offsets[middle]! <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
