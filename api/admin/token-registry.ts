// decision 0098
import { hashSecret, isSameHash } from '../../shared/accounts/credentials.ts';
import { isTokenSecret } from '../../shared/admin/admin-scope.ts';
import type { AdminTokenDocument, AdminTokenStore } from '../../shared/admin/admin-token-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import { SingleFlight } from '../../shared/platform/storage/single-flight.ts';

type TokensByHash = ReadonlyMap<string, AdminTokenDocument>;

/** The list is read again when it is older than this, although every change is announced. */
const freshMs = 5_000;
/** While MongoDB does not respond, the tokens that are known go on for this long. */
const tokenGraceMs = 60_000;
/** How long a failed read is not repeated. */
const retryMs = 1_000;
/** How long one read may take. */
const maxReadMs = 5_000;

/** The named tokens that work, held in memory, so that calls of the admin API ask no database who calls. */
export class TokenRegistry {
  readonly #store: Pick<AdminTokenStore, 'listLive'>;
  readonly #log: Logger;
  readonly #reading = new SingleFlight<TokensByHash>('reading the admin tokens', maxReadMs);
  #known: { readonly tokens: TokensByHash; readonly atMs: number } | null = null;
  /** Counts announced changes. A read that began before one may not include it. */
  #changes = 0;
  #isOutdated = true;
  #failedAtMs = -Infinity;

  constructor(store: Pick<AdminTokenStore, 'listLive'>, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  /** Call this when a token was created or revoked, or such a change may have been missed. */
  invalidate(): void {
    this.#changes += 1;
    this.#isOutdated = true;
    this.#failedAtMs = -Infinity;
  }

  /** @throws AppError `service_unavailable` */
  async hasAny(): Promise<boolean> {
    return (await this.#get()).size > 0;
  }

  /** @returns the token with this secret if it works. @throws AppError `service_unavailable` */
  async find(secret: string): Promise<AdminTokenDocument | null> {
    return isTokenSecret(secret) ? await this.findByHash(hashSecret(secret)) : null;
  }

  /** @throws AppError `service_unavailable` */
  async findByHash(secretHash: string): Promise<AdminTokenDocument | null> {
    const token = (await this.#get()).get(secretHash);
    return token !== undefined && isSameHash(token.secretHash, secretHash) ? token : null;
  }

  async #get(): Promise<TokensByHash> {
    const ageMs = this.#known === null ? Infinity : performance.now() - this.#known.atMs;
    if (this.#known === null || this.#isOutdated || ageMs > tokenGraceMs) return await this.#read();
    if (ageMs > freshMs && performance.now() - this.#failedAtMs > retryMs)
      runInBackground(this.#read().catch(ignoreOutage), 'reading the admin tokens', this.#log);
    return this.#known.tokens;
  }

  async #read(): Promise<TokensByHash> {
    if (performance.now() - this.#failedAtMs < retryMs)
      throw new AppError('service_unavailable', { message: 'the admin tokens could not be read' });
    const changes = this.#changes;
    try {
      const tokens = await this.#reading.runNext('', async () => {
        const live = await this.#store.listLive();
        return new Map(live.map((token) => [token.secretHash, token]));
      });
      this.#known = { tokens, atMs: performance.now() };
      if (changes === this.#changes) this.#isOutdated = false;
      return tokens;
    } catch (error) {
      this.#failedAtMs = performance.now();
      throw error;
    }
  }
}

/** The known tokens go on for a while. */
function ignoreOutage(error: unknown): void {
  if (!(error instanceof AppError)) throw error;
}
