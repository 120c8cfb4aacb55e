// decision 0071
import { createRecentEntries } from '../../../shared/platform/runtime/recent-entries.ts';
import { isApiKey } from '../../../shared/accounts/credentials.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { callerNetwork, callerSite } from '../callers/caller-network.ts';
import type { Services } from '../../services.ts';
import type { ApiContext } from './context.ts';
import type { AccountHolder } from './holder.ts';
import { peekSessionAccess, toSessionHolder, type CookieServices } from './session-holder.ts';

export interface MeteredServices extends CookieServices {
  readonly apiKeys: Pick<Services['apiKeys'], 'find'>;
  readonly funded: Pick<Services['funded'], 'has' | 'find'>;
  readonly sessionAccounts: Pick<Services['sessionAccounts'], 'find'>;
  readonly unpaidTime: Services['unpaidTime'];
  /** The named tokens of operators, which a process holds in memory. */
  readonly admin: { readonly tokens: Pick<Services['admin']['tokens'], 'find'> };
}

/** Work shorter than this is reported together with what follows, in milliseconds. */
const reportedTogetherMs = 1;
/** Look-ups of unknown keys and sessions at the same time, for calls that would otherwise wait. They are work themselves. */
const maxLookUps = 2;
/** The time of this process that a look-up of a key or session which does not exist takes. */
const failedLookUpMs = 0.5;
let lookUps = 0;

/** Longer than a scheme and a key of this gateway. */
const maxAuthorizationLength = 100;
const scheme = 'bearer ';

/** Finding the network of an address takes some microseconds. */
const networks = createRecentEntries<string, string>(10_000);

/** Returns the network whose share of the time a call uses: for IPv6 its /48, which one customer can have. */
function findNetwork(address: string): string {
  let network = networks.get(address);
  if (network === undefined) {
    network = callerSite(callerNetwork(address));
    networks.set(address, network);
  }
  return network;
}

/**
 * Measures the time that a request occupies the event loop: in its middleware until each waits, and while its body is
 * read. Reports it to `UnpaidTime`, unless the caller is known to have money. Not measured is what runs in a middleware
 * or handler after it has waited.
 */
export class WorkMeter {
  readonly #services: MeteredServices;
  readonly #context: ApiContext;
  /** Operations of a network take turns. */
  readonly #operation: string;
  /** Whether the call never waits: balancers would take it for a failure of this process. */
  readonly #isExempt: boolean;
  #isRunning = false;
  #unreportedMs = 0;

  constructor(
    services: MeteredServices,
    context: ApiContext,
    { operation, isExempt = false }: { readonly operation: string; readonly isExempt?: boolean },
  ) {
    this.#isExempt = isExempt;
    this.#services = services;
    this.#context = context;
    this.#operation = operation;
  }

  /** Whether the current code is part of work that is already being measured. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Runs work, and measures its synchronous part. */
  measure<T>(work: () => T): T {
    if (this.#isRunning) return work();
    this.#isRunning = true;
    const startedMs = performance.now();
    try {
      return work();
    } finally {
      this.#isRunning = false;
      this.#unreportedMs += performance.now() - startedMs;
      if (this.#unreportedMs > reportedTogetherMs) this.report();
    }
  }

  /** Reports what was measured since the last report. Call this at the end of the request. */
  report(): void {
    const ms = this.#unreportedMs;
    this.#unreportedMs = 0;
    if (ms > 0 && !this.#isPaid()) this.#services.unpaidTime.add(findNetwork(this.#context.ip), ms);
  }

  /** Whether this request may have to wait for its network's share. */
  get mayHaveToWait(): boolean {
    return this.#services.unpaidTime.isStrained && !this.#isExempt && !this.#isPaid();
  }

  /**
   * Waits until the caller's network may use more of the process's time. Does not wait if the caller has money.
   * @throws AppError `rate_limit_exceeded` if that takes too long; the signal's reason when the client disconnects
   */
  async waitForShare(): Promise<void> {
    if (await this.#findWhetherPaid()) return;
    const { ip, state } = this.#context;
    await this.#services.unpaidTime.acquire({
      network: findNetwork(ip),
      operation: this.#operation,
      signal: state.signal,
    });
  }

  /** Whether the caller is already known to have money, or to be an operator. */
  #isPaid(): boolean {
    const { holder, admin } = this.#context.state;
    if (admin !== undefined) return true;
    return holder !== undefined && this.#services.funded.has(holder);
  }

  /**
   * Whether the caller has money, or a named token of the admin API. Looks up the key or session, and the account, if this
   * process does not know them. `ADMIN_TOKEN` is not compared here: it can be guessed, and whether a call waits would tell.
   */
  async #findWhetherPaid(): Promise<boolean> {
    const { funded } = this.#services;
    if (await this.#findWhetherOperator()) return true;
    const holder = this.#context.state.holder ?? (await this.#findHolder());
    return holder !== null && (await funded.find(holder));
  }

  async #findWhetherOperator(): Promise<boolean> {
    const token = readBearer(this.#context.req.headers.authorization);
    try {
      return (await this.#services.admin.tokens.find(token)) !== null;
    } catch (error) {
      // MongoDB is unavailable. The call itself reports that.
      if (error instanceof AppError) return false;
      throw error;
    }
  }

  /** Without this, the first call of a paying account in this process would wait among the unpaid ones. */
  async #findHolder(): Promise<AccountHolder | null> {
    const { ip } = this.#context;
    const { unpaidTime } = this.#services;
    const lookUp = this.#chooseLookUp();
    if (lookUp === null || lookUps >= maxLookUps) return null;
    lookUps += 1;
    try {
      const holder = await lookUp();
      if (holder === null) unpaidTime.add(findNetwork(ip), failedLookUpMs);
      return holder;
    } catch (error) {
      // A store is unavailable. The call itself reports that.
      if (error instanceof AppError) return null;
      throw error;
    } finally {
      lookUps -= 1;
    }
  }

  /** Returns null if the call has neither a key nor a session that may have been issued here. */
  #chooseLookUp(): (() => Promise<AccountHolder | null>) | null {
    const { req, ip } = this.#context;
    const { apiKeys, sessionAccounts } = this.#services;
    const key = readBearer(req.headers.authorization);
    if (isApiKey(key)) return () => apiKeys.find(key, () => callerNetwork(ip));
    const access = peekSessionAccess(this.#services, this.#context);
    return access && (async () => toSessionHolder(access, await sessionAccounts.find(access)));
  }
}

/** Returns the key or token of a header in the form that clients send; an empty string for any other. */
function readBearer(authorization = ''): string {
  if (authorization.length > maxAuthorizationLength) return '';
  if (authorization.slice(0, scheme.length).toLowerCase() !== scheme) return '';
  return authorization.slice(scheme.length).trim();
}
