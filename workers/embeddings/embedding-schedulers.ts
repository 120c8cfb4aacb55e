import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import type { CallDeps } from './embedding-caller.ts';
import { EmbeddingScheduler } from './embedding-scheduler.ts';
import type { EmbeddingOutcomes, EmbeddingTask } from './embedding-work.ts';

/** The schedulers of this process, two per model. They are never removed, so they keep their quarantined accounts. */
export class EmbeddingSchedulers {
  readonly #catalog: CatalogStore;
  readonly #dependencies: CallDeps;
  readonly #schedulers = new Map<string, EmbeddingScheduler>();

  constructor(catalog: CatalogStore, dependencies: CallDeps) {
    this.#catalog = catalog;
    this.#dependencies = dependencies;
  }

  /** Inputs that wait for their turn at a vendor. */
  get waiting(): number {
    return [...this.#schedulers.values()].reduce((sum, scheduler) => sum + scheduler.waiting, 0);
  }

  async embed(modelId: string, task: EmbeddingTask): Promise<EmbeddingOutcomes> {
    // Durable jobs share no calls with interactive requests, which go first.
    const isBackground = task.begin !== undefined;
    const name = `${modelId}\n${isBackground}`;
    let scheduler = this.#schedulers.get(name);
    if (scheduler === undefined) {
      const findModel = (): ReturnType<CatalogStore['find']> => this.#catalog.find(modelId);
      scheduler = new EmbeddingScheduler(this.#dependencies, { modelId, isBackground, findModel });
      this.#schedulers.set(name, scheduler);
    }
    return await scheduler.embed(task);
  }
}
