import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import type { CallDependencies } from './embedding-caller.ts';
import { EmbeddingLine } from './embedding-line.ts';
import type { EmbeddingAnswerOfAsk, EmbeddingAsk } from './embedding-work.ts';

/** The lines of this process, two for each model; they stay, as does what they know of accounts in quarantine. */
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
    // Durable jobs share no calls with what somebody waits for: that goes first.
    const isBackground = ask.begin !== undefined;
    const name = `${modelId}\n${isBackground}`;
    let line = this.#lines.get(name);
    if (line === undefined) {
      const findModel = (): ReturnType<CatalogStore['find']> => this.#catalog.find(modelId);
      line = new EmbeddingLine(this.#dependencies, { modelId, isBackground, findModel });
      this.#lines.set(name, line);
    }
    return await line.embed(ask);
  }
}
