import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import type { CallDependencies } from './embedding-caller.ts';
import { EmbeddingLine } from './embedding-line.ts';
import type { EmbeddingAnswerOfAsk, EmbeddingAsk } from './embedding-work.ts';

/** The lines of this process, one for each model; they stay, as does what they know of accounts in quarantine. */
export class EmbeddingLines {
  readonly #catalog: CatalogStore;
  readonly #dependencies: CallDependencies;
  readonly #lines = new Map<string, EmbeddingLine>();

  constructor(catalog: CatalogStore, dependencies: CallDependencies) {
    this.#catalog = catalog;
    this.#dependencies = dependencies;
  }

  /** Inputs that wait for their turn at a vendor. */
  get waiting(): number {
    return [...this.#lines.values()].reduce((sum, line) => sum + line.waiting, 0);
  }

  async embed(modelId: string, ask: EmbeddingAsk): Promise<EmbeddingAnswerOfAsk> {
    let line = this.#lines.get(modelId);
    if (line === undefined) {
      const findModel = (): ReturnType<CatalogStore['find']> => this.#catalog.find(modelId);
      line = new EmbeddingLine(this.#dependencies, { modelId, findModel });
      this.#lines.set(modelId, line);
    }
    return await line.embed(ask);
  }
}
