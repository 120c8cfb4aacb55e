import { createRecentEntries } from '../../shared/platform/runtime/recent-entries.ts';
import { SingleFlight } from '../../shared/platform/storage/single-flight.ts';
import type { JobLine } from '../../shared/work/jobs/job-line.ts';
import type { JobOutlook } from '../../shared/work/jobs/job-outlook.ts';

const maxLines = 1_000;
const validMs = 500;

/**
 * Caches outlooks in the memory of one process. Reading one takes time in proportion to the waiting accounts, and many
 * callers need the same one. Concurrent callers share one read.
 */
export class JobOutlooks {
  readonly #read: (line: JobLine) => Promise<JobOutlook>;
  readonly #known = createRecentEntries<string, JobOutlook>(maxLines, validMs);
  readonly #reading = new SingleFlight<JobOutlook>('job outlook read');

  constructor(read: (line: JobLine) => Promise<JobOutlook>) {
    this.#read = read;
  }

  /**
   * Returns the model queue's outlook, at most half a second old.
   * @throws any error of the read
   */
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
