import { SingleFlight } from '../../shared/platform/storage/single-flight.ts';
import type { Demand } from '../../shared/work/demand/demand.ts';

/** How long a reading applies, so that many scrapes cost no more than one. Workers report once a second. */
const validMs = 1_000;

/** Reads the demand for several readers in one process. Unlike other figures, it is never shown once it is outdated. */
export class DemandCache {
  readonly #read: () => Promise<Demand>;
  readonly #reading = new SingleFlight<Demand>('reading the demand');
  #known: { readonly demand: Demand; readonly untilMs: number } | null = null;

  constructor(read: () => Promise<Demand>) {
    this.#read = read;
  }

  /** @throws AppError `service_unavailable` */
  async get(): Promise<Demand> {
    if (this.#known !== null && performance.now() < this.#known.untilMs) return this.#known.demand;
    const demand = await this.#reading.run('', this.#read);
    this.#known = { demand, untilMs: performance.now() + validMs };
    return demand;
  }
}
