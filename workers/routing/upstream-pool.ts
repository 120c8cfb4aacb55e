import type { Catalog, CatalogUpstream } from '../../shared/catalog/catalog-schema.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { createUpstream } from '../upstreams/upstream-kinds.ts';
import type { Upstream } from '../upstreams/upstream.ts';

interface Entry {
  readonly upstream: Upstream;
  readonly settings: string;
  /** The catalog's entry that these settings were last found in: most calls come with the same one. */
  config: CatalogUpstream;
}

/** A replaced upstream's sockets stay open for as long as a call that began on them may take. */
const closeDelayMs = 10 * 60_000;

/** The upstreams of the catalog as it stands now, made on first use and kept while their settings stay the same. */
export class UpstreamPool {
  readonly #entries = new Map<string, Entry>();
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  get(config: CatalogUpstream): Upstream {
    const known = this.#entries.get(config.name);
    if (known?.config === config) return known.upstream;
    const { apiKeys: _keys, drops: _drops, ...rest } = config;
    const settings = JSON.stringify(rest);
    if (known?.settings === settings) {
      known.config = config;
      return known.upstream;
    }
    if (known !== undefined) this.#closeLater(config.name, known);
    const upstream = createUpstream(config);
    this.#entries.set(config.name, { upstream, settings, config });
    return upstream;
  }

  /** Lets go of what a reloaded catalog no longer names. */
  forgetMissing(catalog: Catalog): void {
    const names = new Set(catalog.upstreams.map((upstream) => upstream.name));
    for (const [name, entry] of this.#entries) {
      if (names.has(name)) continue;
      this.#entries.delete(name);
      this.#closeLater(name, entry);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#entries.values()].map((entry) => entry.upstream.close()));
    this.#entries.clear();
  }

  #closeLater(name: string, entry: Entry): void {
    const timer = setTimeout(() => {
      entry.upstream.close().catch((error: unknown) => {
        this.#log.warn({ upstream: name, err: error }, 'a replaced upstream did not close');
      });
    }, closeDelayMs);
    timer.unref();
  }
}
