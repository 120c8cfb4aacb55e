import { LRUCache } from 'lru-cache';
import { SingleFlight } from '../runtime/single-flight.ts';
import type { JobLine } from './job-line.ts';
import type { JobOutlook } from './job-outlook.ts';

const maxLines = 1_000;
const validMs = 500;

/**
 * Outlooks in the memory of one process: reading one takes time in proportion to the accounts that wait, and many callers
 * ask for the same line. Callers who come together share one reading.
 */
export class JobOutlooks {
  readonly #read: (line: JobLine) => Promise<JobOutlook>;
  readonly #known = new LRUCache<string, JobOutlook>({ max: maxLines, ttl: validMs });
  readonly #reading = new SingleFlight<JobOutlook>('reading the outlook of a line of jobs');

  constructor(read: (line: JobLine) => Promise<JobOutlook>) {
    this.#read = read;
  }

  /** At most half a second old. @throws what the reading throws */
  async get(line: JobLine): Promise<JobOutlook> {
    const name = `${line.queue}:${line.model}`;
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    return await this.#reading.run(name, async () => {
      const outlook = await this.#read(line);
      this.#known.set(name, outlook);
      return outlook;
    });
  }
}
