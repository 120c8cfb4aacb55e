// decision 0019
import { Client, type Dispatcher } from 'undici';
import { AppError } from '../../shared/contract/errors.ts';
import { FairBudget } from '../../shared/fairness/fair-budget.ts';
import { readPublicUrl } from '../../shared/platform/runtime/public-url.ts';
import { connectTo } from './connect-to.ts';
import { fetchFailed, urlRejected } from './url-errors.ts';
import {
  findPublicAddresses,
  readPublicInternet,
  type PublicInternet,
  type PublicInternetOptions,
} from './find-addresses.ts';
import { readBoundedBody } from './read-bounded-body.ts';

/**
 * Maximum number of concurrent fetches. Callers choose the hosts, so without a limit they could make a worker open
 * thousands of connections. Accounts share the limit fairly, so that hanging URLs only delay the account that sent
 * them.
 */
const maxFetches = 16;
/** How long to wait for a connection. A fetch takes at most 15 s, so a longer wait means a long queue. */
const maxWaitMs = 30_000;
const maxRedirects = 3;
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const defaultTimeouts: FetchTimeouts = { connectMs: 5_000, totalMs: 15_000, rejectionStepMs: 1_000 };

export interface FetchTimeouts {
  readonly connectMs: number;
  /** For one URL with its redirects, from the first lookup to the last byte. */
  readonly totalMs: number;
  /** A name without public addresses is rejected only after a multiple of this, which hides how fast the lookup was. */
  readonly rejectionStepMs: number;
}

/** Only tests set these options. */
export interface SafeFetchOptions extends PublicInternetOptions {
  readonly timeouts?: FetchTimeouts;
}

type Settings = FetchTimeouts & PublicInternet;

export interface FetchLimits {
  readonly maxBytes: number;
  /** The account whose request contains the URL. */
  readonly accountId: string;
  readonly signal: AbortSignal;
}

/**
 * The parts of a 200 response that are used. `contentType` is what the server claims; it is not verified.
 */
export interface FetchedBytes {
  readonly bytes: Buffer;
  readonly contentType: string | null;
}

/** Fetches URLs that callers sent. Connections are not reused. */
export interface SafeFetchClient {
  /**
   * GETs an https URL on the public internet, following redirects within it.
   * @throws AppError `unsafe_url`, `validation_failed` or `deadline_exceeded`; the signal's reason when it is aborted
   */
  fetchBytes(url: string, limits: FetchLimits): Promise<FetchedBytes>;
}

/**
 * Creates the client for untrusted URLs. For each URL, including redirects, first its text and then all addresses of
 * its host are checked, and the connection goes only to those addresses. Each fetch uses a new connection: hosts rarely
 * repeat, and a reused connection would outlive its check. Proxies, cookies and keys are never used.
 */
export function createSafeFetchClient(options: SafeFetchOptions = {}): SafeFetchClient {
  const connections = new FairBudget({ capacity: maxFetches });
  const createError = (): AppError => new AppError('deadline_exceeded');
  const settings: Settings = {
    ...(options.timeouts ?? defaultTimeouts),
    ...readPublicInternet(options),
  };
  return {
    async fetchBytes(url, { maxBytes, accountId, signal }) {
      const connection = await connections.acquire(accountId, 1, { signal, waitMs: maxWaitMs, createError });
      const timeout = new AbortController();
      const onAbort = (): void => timeout.abort(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      const timer = setTimeout(() => timeout.abort(), settings.totalMs);
      try {
        return await new SafeFetch(url, { maxBytes, signal: timeout.signal }, settings).run();
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (timeout.signal.aborted)
          throw fetchFailed(url, `it took longer than ${settings.totalMs / 1000} s`, error);
        throw error;
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        connection.release();
      }
    },
  };
}

/** Fetches one URL, following its redirects. */
class SafeFetch {
  readonly #text: string;
  readonly #limits: Omit<FetchLimits, 'accountId'>;
  readonly #settings: Settings;
  #redirects = 0;

  constructor(text: string, limits: Omit<FetchLimits, 'accountId'>, settings: Settings) {
    this.#text = text;
    this.#limits = limits;
    this.#settings = settings;
  }

  async run(): Promise<FetchedBytes> {
    let url = this.#readUrl(this.#text);
    for (;;) {
      const response = await this.#get(url, await this.#findAddresses(url));
      if (!('location' in response)) return response;
      this.#redirects += 1;
      if (this.#redirects > maxRedirects) {
        throw fetchFailed(this.#text, `it redirects more than ${maxRedirects} times`);
      }
      url = this.#readUrl(response.location, url);
    }
  }

  #readUrl(text: string, from?: URL): URL {
    const url = readPublicUrl(text, this.#settings.ports, from);
    if (typeof url === 'string') throw urlRejected(this.#text, url, this.#redirects > 0);
    return url;
  }

  async #findAddresses(url: URL): Promise<readonly string[]> {
    const { signal } = this.#limits;
    const addresses = await findPublicAddresses(url, this.#settings, this.#settings.rejectionStepMs, signal);
    if (addresses !== null) return addresses;
    const problem = 'has a host that is not on the public internet';
    throw urlRejected(this.#text, problem, this.#redirects > 0);
  }

  async #get(url: URL, addresses: readonly string[]): Promise<FetchedBytes | { location: string }> {
    const { signal, maxBytes } = this.#limits;
    const { isPublic, ca, connectMs: timeoutMs } = this.#settings;
    const client = new Client(url.origin, {
      connect: connectTo(addresses, { signal, timeoutMs, isPublic, ca }),
      // The timer limits the whole fetch.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    try {
      const { statusCode, headers, body } = await this.#request(client, url);
      // An unread body is discarded below when the client is destroyed. That is not an error.
      body.on('error', () => undefined);
      const location = headers['location'];
      if (redirectStatuses.has(statusCode) && typeof location === 'string') return { location };
      if (statusCode !== 200) throw fetchFailed(this.#text, `its server responded with status ${statusCode}`);
      const readResult = await readBoundedBody(headers, body, maxBytes);
      if ('problem' in readResult) throw fetchFailed(this.#text, readResult.problem, readResult.cause);
      const contentType = headers['content-type'];
      return { bytes: readResult.bytes, contentType: typeof contentType === 'string' ? contentType : null };
    } finally {
      await client.destroy();
    }
  }

  async #request(client: Client, url: URL): Promise<Dispatcher.ResponseData> {
    try {
      return await client.request({
        method: 'GET',
        path: `${url.pathname}${url.search}`,
        headers: {
          'user-agent': 'model-gateway',
          accept: 'image/*,*/*;q=0.5',
          'accept-encoding': 'identity',
        },
        signal: this.#limits.signal,
        reset: true,
      });
    } catch (error) {
      throw fetchFailed(this.#text, 'its server did not respond over https with a valid certificate', error);
    }
  }
}
