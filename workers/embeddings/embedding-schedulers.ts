import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import type { CallDeps } from './embedding-caller.ts';
import { EmbeddingScheduler } from './embedding-scheduler.ts';
import type { EmbeddingOutcomes, EmbeddingTask } from './embedding-work.ts';

/**
 * The schedulers of this process: per model, one for interactive requests and one for durable jobs. They are never
 * removed, so they keep their quarantined accounts.
 */
export class EmbeddingSchedulers {
  readonly #catalog: CatalogStore;
  readonly #dependencies: CallDeps;
  readonly #schedulers = new Map<string, EmbeddingScheduler>();

  constructor(catalog: CatalogStore, dependencies: CallDeps) {
    this.#catalog = catalog;
    this.#dependencies = dependencies;
  }

  /** Inputs that are not part of a call yet. */
  get waiting(): number {
    return [...this.#schedulers.values()].reduce((sum, scheduler) => sum + scheduler.waiting, 0);
  }

  async embed(modelId: string, task: EmbeddingTask): Promise<EmbeddingOutcomes> {
    // Durable jobs do not share calls with interactive requests, which take precedence.
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
