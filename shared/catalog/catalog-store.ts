import { readFile, stat } from 'node:fs/promises';
import { ConfigError } from '../platform/runtime/config-error.ts';
import { explainFileError } from '../platform/runtime/explain-file-error.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import type { Catalog, CatalogModel, CatalogRoute } from './catalog-schema.ts';
import { compareCatalogs } from './compare-catalogs.ts';
import { isRouteDrained, nameDrained } from './drained-routes.ts';
import { CatalogError, formatProblem, parseCatalog } from './parse-catalog.ts';

export interface CatalogStoreOptions {
  readonly path: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly redis: RedisClient;
  readonly log: Logger;
  /** Returns the day on which a price was first seen. Used if the file gives no start day; today if unknown. */
  readonly findPriceDay?: (modelId: string, priceVersion: string) => string | undefined;
}

/** A change takes effect when two checks in a row find the same changed file: within twice this time. */
const pollIntervalMs = 250;

/**
 * Holds the current catalog, and which models and routes operators have turned off. It polls the file instead of watching it: a watcher is
 * lost when an editor replaces the file or Kubernetes swaps a symlink.
 */
export class CatalogStore {
  readonly #options: CatalogStoreOptions;
  readonly #listeners: ((catalog: Catalog) => void)[] = [];
  #catalog: Catalog;
  /** Text of the current catalog. */
  #text: string;
  /** State of the file before it was last read. A write during the read makes the next state differ from this. */
  #readFingerprint: string;
  /** State of the file at the last check. Null while it is unchanged since it was read. */
  #changingFingerprint: string | null = null;
  /** The text last read, valid or not. Null if the file could not be read. */
  #lastReadText: string | null;
  #disabled: ReadonlySet<string> = new Set();
  #drained: ReadonlySet<string> = new Set();
  #isDisabledStale = false;
  #isPolling = false;
  #timer: NodeJS.Timeout | null;

  /**
   * Opens the catalog file and starts polling it.
   * @throws CatalogError if the file is not valid; ConfigError if it cannot be read
   */
  static async open(options: CatalogStoreOptions): Promise<CatalogStore> {
    const fingerprint = await fingerprintFile(options.path);
    let text: string;
    try {
      text = await readFile(options.path, 'utf8');
    } catch (error) {
      throw unreadableCatalog(options.path, error);
    }
    const { env, path, findPriceDay } = options;
    const known = findPriceDay === undefined ? {} : { findPriceDay };
    const catalog = parseCatalog(text, { env, fileName: path, today: readToday(), ...known });
    for (const warning of catalog.warnings) options.log.warn(`catalog: ${warning}`);
    const store = new CatalogStore(options, fingerprint, text, catalog);
    await store.refreshDisabled();
    return store;
  }

  private constructor(options: CatalogStoreOptions, fingerprint: string, text: string, catalog: Catalog) {
    this.#options = options;
    this.#readFingerprint = fingerprint;
    this.#text = text;
    this.#lastReadText = text;
    this.#catalog = catalog;
    this.#timer = setInterval(() => {
      this.#poll().catch((error: unknown) => options.log.error({ err: error }, 'catalog file check failed'));
    }, pollIntervalMs);
    // Do not keep an otherwise idle process alive.
    this.#timer.unref();
  }

  get current(): Catalog {
    return this.#catalog;
  }

  /** Everything the store's results depend on. While these are the same objects, the results do not change. */
  get state(): readonly unknown[] {
    return [this.#catalog, this.#disabled, this.#drained];
  }

  find(idOrAlias: string): CatalogModel | undefined {
    return this.#catalog.find(idOrAlias);
  }

  /**
   * Returns whether requests for the model can be served now: it has a usable route that is not drained, and no
   * administrator disabled it.
   */
  isActive(model: CatalogModel): boolean {
    return model.routes.some((route) => !this.isDrained(model, route)) && !this.isDisabled(model);
  }

  /** Returns whether an operator has drained the model's route: it gets no further calls. */
  isDrained({ id }: Pick<CatalogModel, 'id'>, route: CatalogRoute): boolean {
    return this.#drained.size > 0 && isRouteDrained(this.#drained, id, route);
  }

  /** Returns whether an operator has drained the upstream for all models. */
  isUpstreamDrained(name: string): boolean {
    return this.#drained.has(nameDrained(name, null));
  }

  isDisabled(model: CatalogModel): boolean {
    return this.#disabled.has(model.id);
  }

  /**
   * Reads which models are disabled and which routes are drained. While Redis is unavailable, the last known lists apply,
   * and the read is retried until it succeeds.
   */
  async refreshDisabled(): Promise<void> {
    try {
      const { redis } = this.#options;
      const [disabled, drained] = await Promise.all([
        redis.smembers(redisKeys.disabledModels),
        redis.smembers(redisKeys.drainedRoutes),
      ]);
      this.#disabled = new Set(disabled);
      this.#drained = new Set(drained);
      this.#isDisabledStale = false;
    } catch (error) {
      if (!this.#isDisabledStale && this.#timer !== null) {
        this.#options.log.warn(
          { err: error },
          'disabled models and drained routes cannot be read; the last known ones apply',
        );
      }
      this.#isDisabledStale = true;
    }
  }

  /** Registers a listener that is called with each later catalog. */
  onReload(listener: (catalog: Catalog) => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  async #poll(): Promise<void> {
    // Do not start another check while one is running, because the disk or Redis may be slow.
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      if (this.#isDisabledStale) await this.refreshDisabled();
      await this.#checkFile();
    } finally {
      this.#isPolling = false;
    }
  }

  async #checkFile(): Promise<void> {
    const fingerprint = await fingerprintFile(this.#options.path);
    if (fingerprint === this.#readFingerprint) {
      this.#changingFingerprint = null;
    } else if (fingerprint !== this.#changingFingerprint) {
      // The file may be half written. Read it once it has stayed the same for one interval.
      this.#changingFingerprint = fingerprint;
    } else {
      this.#readFingerprint = fingerprint;
      this.#changingFingerprint = null;
      await this.#reload();
    }
  }

  async #reload(): Promise<void> {
    const { path, env, log } = this.#options;
    let text: string;
    try {
      text = await readFile(path, 'utf8');
    } catch (error) {
      this.#lastReadText = null;
      log.error({ err: error }, 'catalog cannot be read; the old one stays in effect');
      return;
    }
    if (text === this.#lastReadText || this.#timer === null) return;
    this.#lastReadText = text;
    if (text === this.#text) {
      log.info('catalog file is back to its loaded content; nothing changed');
      return;
    }
    let next: Catalog;
    try {
      next = parseCatalog(text, {
        env,
        fileName: path,
        today: readToday(),
        findPriceDay: (modelId, priceVersion) => this.#findPriceDay(modelId, priceVersion),
      });
    } catch (error) {
      if (!(error instanceof CatalogError)) throw error;
      for (const problem of error.problems)
        log.error({ ...problem }, `catalog: ${formatProblem(path, problem)}`);
      log.error(
        { problems: error.problems.length },
        'changed catalog is not valid; the old one stays in effect',
      );
      return;
    }
    const changes = compareCatalogs(this.#catalog, next);
    // Report only warnings that are new in this reload.
    const before = new Set(this.#catalog.warnings);
    this.#text = text;
    this.#catalog = next;
    log.info(changes, 'catalog reloaded');
    for (const warning of next.warnings) if (!before.has(warning)) log.warn(`catalog: ${warning}`);
    for (const listener of this.#listeners) {
      try {
        listener(next);
      } catch (error) {
        log.error({ err: error }, 'catalog listener failed');
      }
    }
  }

  /** A price that is unchanged in a new file keeps its start day. */
  #findPriceDay(modelId: string, priceVersion: string): string | undefined {
    const known = this.#catalog.models.find((model) => model.id === modelId);
    if (known?.priceVersion === priceVersion) return known.pricing.date_of_use;
    return this.#options.findPriceDay?.(modelId, priceVersion);
  }
}

/** Describes why the catalog file cannot be read. The path is included, because it may be the default. */
export function unreadableCatalog(path: string, error: unknown): ConfigError {
  const reason = explainFileError(error, path);
  return new ConfigError(
    `The catalog ${path} cannot be read: ${reason}. Set CATALOG to the path of your catalog file.`,
    {
      cause: error,
    },
  );
}

const readToday = (): string => new Date().toISOString().slice(0, 10);

/** Returns a fingerprint that changes whenever the file is written or replaced. Follows symlinks. */
async function fingerprintFile(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(':');
  } catch (error) {
    // The file is missing or inaccessible. The read that follows reports which.
    return `none: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`;
  }
}
