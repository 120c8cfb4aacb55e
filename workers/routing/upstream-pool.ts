import type { Catalog, CatalogUpstream } from '../../shared/catalog/catalog-schema.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { createUpstream } from './upstream-kinds.ts';
import type { Upstream } from '../upstreams/upstream.ts';

interface Entry {
  readonly upstream: Upstream;
  readonly settings: string;
  /** The catalog entry that last had these settings. Most calls pass the same one. */
  config: CatalogUpstream;
}

interface ReplacedUpstream {
  readonly entry: Entry;
  readonly closeTimer: NodeJS.Timeout;
}

/**
 * How long the sockets of a replaced upstream stay open: as long as a call on them may take. They also serve requests
 * that were waiting when the catalog changed.
 */
const closeDelayMs = 10 * 60_000;

/** The upstreams of the current catalog, created on first use and reused while their settings stay the same. */
export class UpstreamPool {
  readonly #entries = new Map<string, Entry>();
  /** By name and settings. */
  readonly #replaced = new Map<string, ReplacedUpstream>();
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  get(config: CatalogUpstream): Upstream {
    const knownEntry = this.#entries.get(config.name);
    if (knownEntry?.config === config) return knownEntry.upstream;
    const { apiKeys: _keys, drops: _drops, sendsTraceparent: _traces, ...connectionSettings } = config;
    const settings = JSON.stringify(connectionSettings);
    if (knownEntry?.settings === settings) {
      knownEntry.config = config;
      return knownEntry.upstream;
    }
    if (knownEntry !== undefined) this.#closeLater(config.name, knownEntry);
    const upstream = this.#reopen(config.name, settings) ?? createUpstream(config, this.#log);
    this.#entries.set(config.name, { upstream, settings, config });
    return upstream;
  }

  /** Closes upstreams that a reloaded catalog no longer contains, after a delay. Until then, `get` still returns them. */
  closeRemoved(catalog: Catalog): void {
    const names = new Set(catalog.upstreams.map((upstream) => upstream.name));
    for (const [name, entry] of this.#entries) {
      if (names.has(name)) continue;
      this.#entries.delete(name);
      this.#closeLater(name, entry);
    }
  }

  async close(): Promise<void> {
    const replaced = [...this.#replaced.values()];
    for (const { closeTimer } of replaced) clearTimeout(closeTimer);
    const entries = [...this.#entries.values(), ...replaced.map(({ entry }) => entry)];
    this.#entries.clear();
    this.#replaced.clear();
    await Promise.all(entries.map((entry) => entry.upstream.close()));
  }

  #reopen(name: string, settings: string): Upstream | null {
    const key = `${name} ${settings}`;
    const replaced = this.#replaced.get(key);
    if (replaced === undefined) return null;
    clearTimeout(replaced.closeTimer);
    this.#replaced.delete(key);
    return replaced.entry.upstream;
  }

  #closeLater(name: string, entry: Entry): void {
    const key = `${name} ${entry.settings}`;
    const closeTimer = setTimeout(() => {
      this.#replaced.delete(key);
      entry.upstream.close().catch((error: unknown) => {
        this.#log.warn({ upstream: name, err: error }, 'closing a replaced upstream failed');
      });
    }, closeDelayMs);
    closeTimer.unref();
    this.#replaced.set(key, { entry, closeTimer });
  }
}
