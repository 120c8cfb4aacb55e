import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import type { CallDeps } from './embedding-caller.ts';
import type { CallClass } from '../../shared/work/queue/call-class.ts';
import type { HeldCounts } from '../../shared/work/queue/held-work.ts';
import { EmbeddingScheduler } from './embedding-scheduler.ts';
import type { EmbeddingOutcomes, EmbeddingTask } from './embedding-task.ts';

/** The schedulers of this process, one per model. They are never removed, so they keep their quarantined accounts. */
export class EmbeddingSchedulers {
  readonly #catalog: CatalogStore;
  readonly #dependencies: CallDeps;
  readonly #schedulers = new Map<string, EmbeddingScheduler>();
  #expectsLines = (): boolean => true;

  constructor(catalog: CatalogStore, dependencies: CallDeps) {
    this.#catalog = catalog;
    this.#dependencies = dependencies;
  }

  /** Inputs that are not part of a call yet. */
  get waiting(): number {
    return [...this.#schedulers.values()].reduce((sum, scheduler) => sum + scheduler.waiting, 0);
  }

  /** As `EmbeddingScheduler.countWaiting`. */
  countWaiting(modelId: string, callClass: CallClass): HeldCounts {
    return this.#schedulers.get(modelId)?.countWaiting(callClass) ?? { waiting: 0, running: 0, oldestMs: 0 };
  }

  /** @param expectsLines whether more lines of batches will be embedded soon */
  setForecast(expectsLines: () => boolean): void {
    this.#expectsLines = expectsLines;
  }

  /** As `EmbeddingScheduler.whenLinesWanted`, for a model by any of its names. */
  whenLinesWanted(name: string): Promise<void> | null {
    return this.#schedulers.get(this.#catalog.find(name)?.id ?? name)?.whenLinesWanted ?? null;
  }

  async embed(modelId: string, task: EmbeddingTask): Promise<EmbeddingOutcomes> {
    let scheduler = this.#schedulers.get(modelId);
    if (scheduler === undefined) {
      const findModel = (): ReturnType<CatalogStore['find']> => this.#catalog.find(modelId);
      const expectsLines = (): boolean => this.#expectsLines();
      scheduler = new EmbeddingScheduler(this.#dependencies, { modelId, findModel, expectsLines });
      this.#schedulers.set(modelId, scheduler);
    }
    return await scheduler.embed(task);
  }
}
