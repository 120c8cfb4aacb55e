import type { CatalogModel } from '../catalog/catalog-schema.ts';
import type { Pricing } from '../contract/models.ts';
import { ConfigError } from '../platform/runtime/config-error.ts';
import { explainMongoError } from '../platform/storage/explain-mongo-error.ts';
import { insertMissing } from '../platform/storage/insert-missing.ts';
import {
  callMongo,
  isMongoUnavailable,
  type Collection,
  type Database,
} from '../platform/storage/mongo-client.ts';
import type { RequestLogDocument } from './ledger-store.ts';

/** A price that requests were settled with; kept forever. `_id` is `model:version`. */
interface PriceDocument {
  readonly _id: string;
  readonly model: string;
  readonly version: string;
  readonly pricing: Pricing;
  readonly firstSeenAt: Date;
}

/** A row with the prices that its request was charged by; null if they are not stored. */
export interface PricedRow {
  readonly row: RequestLogDocument;
  readonly pricing: Pricing | null;
}

/** A model at a price. */
export type PricedModel = Pick<CatalogModel, 'id' | 'priceVersion' | 'pricing'>;

const retryMs = 5_000;

/** Returns the day on which a model's price was first seen, if it is stored. */
export type PriceDays = (model: string, version: string) => string | undefined;

/** Every price ever in effect. Ledger rows are recomputed from these. */
export class PriceStore {
  readonly #prices: Collection<PriceDocument>;
  readonly #found = new Map<string, Pricing>();
  readonly #saved = new Set<string>();
  /** Prices still to be saved. */
  readonly #pending = new Map<string, PricedModel>();
  #isFlushing = false;

  constructor(db: Database) {
    this.#prices = db.collection('prices');
  }

  /** Saves the prices of these models. Prices that this process has already saved are skipped. */
  async save(models: readonly PricedModel[]): Promise<void> {
    const firstSeenAt = new Date();
    const documents = models.map(({ id, priceVersion, pricing }) => ({
      _id: `${id}:${priceVersion}`,
      model: id,
      version: priceVersion,
      pricing,
      firstSeenAt,
    }));
    const unsaved = documents.filter(({ _id }) => !this.#saved.has(_id));
    await insertMissing(this.#prices, unsaved);
    for (const { _id } of unsaved) this.#saved.add(_id);
  }

  /**
   * Saves the price that a request was settled with, whichever catalog it came from. A price that was in effect only
   * briefly may be known only to the process that admitted the request. Returns immediately and retries while MongoDB
   * is unavailable.
   */
  saveLater(model: PricedModel): void {
    const id = `${model.id}:${model.priceVersion}`;
    if (this.#saved.has(id) || this.#pending.has(id)) return;
    this.#pending.set(id, model);
    this.#flushSoon(0);
  }

  #flushSoon(delayMs: number): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    const timer = setTimeout(() => {
      const models = [...this.#pending.values()];
      this.save(models).then(
        () => {
          for (const { id, priceVersion } of models) this.#pending.delete(`${id}:${priceVersion}`);
          this.#isFlushing = false;
          if (this.#pending.size > 0) this.#flushSoon(0);
        },
        () => {
          this.#isFlushing = false;
          this.#flushSoon(retryMs);
        },
      );
    }, delayMs);
    timer.unref();
  }

  /**
   * Reads the day (UTC) on which each price was first seen. Used for prices whose catalog does not specify a date. No day
   * is known while MongoDB is unavailable.
   * @throws ConfigError if MongoDB denies access; this is a process's first query
   */
  async readDays(): Promise<PriceDays> {
    const days = new Map<string, string>();
    try {
      const stored = this.#prices.find({}, { projection: { firstSeenAt: 1 } });
      for await (const { _id, firstSeenAt } of stored) days.set(_id, firstSeenAt.toISOString().slice(0, 10));
    } catch (error) {
      if (isMongoUnavailable(error)) return () => undefined;
      const explanation = explainMongoError(error);
      throw explanation === null ? error : new ConfigError(explanation, { cause: error });
    }
    return (model, version) => days.get(`${model}:${version}`);
  }

  /** Adds to rows the prices that their requests were charged by. Looks up each price once. */
  async addTo(rows: readonly RequestLogDocument[]): Promise<PricedRow[]> {
    const keyOf = ({ model, priceVersion }: RequestLogDocument): string => `${model}:${priceVersion}`;
    const distinct = new Map(rows.map((row) => [keyOf(row), row]));
    const found = await callMongo(() =>
      Promise.all(
        Array.from(
          distinct,
          async ([key, { model, priceVersion }]) => [key, await this.find(model, priceVersion)] as const,
        ),
      ),
    );
    const prices = new Map(found);
    return rows.map((row) => ({ row, pricing: prices.get(keyOf(row)) ?? null }));
  }

  /** Returns null if the price is not stored. */
  async find(model: string, version: string): Promise<Pricing | null> {
    // A rejected request was not charged by any.
    if (version === '') return null;
    const _id = `${model}:${version}`;
    const known = this.#found.get(_id);
    if (known !== undefined) return known;
    const document = await this.#prices.findOne({ _id });
    if (document !== null) this.#found.set(_id, document.pricing);
    return document?.pricing ?? null;
  }
}
