import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import { EmbeddingLine, type LineDependencies } from './embedding-line.ts';
import type { EmbeddingAnswerOfAsk, EmbeddingAsk } from './embedding-work.ts';
import { Suspects } from './suspects.ts';

/** The lines of this process: one for each model and number of dimensions that anybody waits for. */
export class EmbeddingLines {
  readonly #catalog: CatalogStore;
  readonly #dependencies: LineDependencies;
  readonly #suspects = new Suspects();
  readonly #lines = new Map<string, EmbeddingLine>();

  constructor(catalog: CatalogStore, dependencies: LineDependencies) {
    this.#catalog = catalog;
    this.#dependencies = dependencies;
  }

  /** Inputs that wait for their turn at a vendor. */
  get waiting(): number {
    return [...this.#lines.values()].reduce((sum, line) => sum + line.waiting, 0);
  }

  async embed(modelId: string, dimensions: number | null, ask: EmbeddingAsk): Promise<EmbeddingAnswerOfAsk> {
    const name = `${modelId}\n${dimensions ?? ''}`;
    let line = this.#lines.get(name);
    if (line === undefined) {
      const findModel = (): ReturnType<CatalogStore['find']> => this.#catalog.find(modelId);
      const suspects = this.#suspects;
      line = new EmbeddingLine(this.#dependencies, { modelId, dimensions, findModel, suspects });
      this.#lines.set(name, line);
    }
    const answer = await line.embed(ask);
    if (line.isIdle && this.#lines.get(name) === line) this.#lines.delete(name);
    return answer;
  }
}
