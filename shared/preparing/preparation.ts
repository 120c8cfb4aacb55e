import type { CatalogModel } from '../catalog/catalog-schema.ts';
import type { CatalogStore } from '../catalog/catalog-store.ts';
import { CountingTurn } from '../catalog/count-tokens.ts';
import type { Estimate } from '../money/estimate.ts';

/** The parts of the catalog that finding a model needs. */
export type ModelCatalog = Pick<CatalogStore, 'current' | 'find' | 'isActive'>;

/** A valid request, ready for admission. */
export interface Prepared<Job> {
  readonly model: CatalogModel;
  readonly estimate: Estimate;
  /** What the job contains in addition to what admission determines. */
  readonly job: Job;
}

/** On whose behalf a request is prepared, and what is checked meanwhile. A check that throws ends the preparation. */
export interface PrepareOptions {
  readonly accountId: string;
  /** Aborted once the request is no longer needed. */
  readonly signal: AbortSignal;
  /**
   * Called once the model is known and the body is valid, before anything that takes time.
   * @param readsFiles whether files will be read, which takes as much time as reading a large body
   */
  readonly checkEarly?: (model: CatalogModel, readsFiles: boolean) => Promise<void>;
  /** Called after waiting for each event-loop turn. */
  readonly checkTurn?: (model: CatalogModel) => Promise<void>;
  /** The turns in which text is tokenized, if several requests share them. Without it, they are the request's own. */
  readonly countingTurn?: CountingTurn;
}

/**
 * Creates the event-loop turns in which the text of one request is tokenized. Tokenizing takes milliseconds, or seconds
 * for a large body, so it stops if the request is no longer needed or a check fails.
 */
export function createCountingTurn(
  { accountId, signal, checkTurn, countingTurn }: PrepareOptions,
  model: CatalogModel,
): CountingTurn {
  if (countingTurn !== undefined) return countingTurn;
  const check = async (): Promise<void> => {
    signal.throwIfAborted();
    await checkTurn?.(model);
  };
  return new CountingTurn(check, accountId);
}
