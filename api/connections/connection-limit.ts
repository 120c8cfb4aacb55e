import { Holdings } from '../../shared/fairness/holdings.ts';
import type { Connection } from './connection.ts';
import { isSilent } from './silent-body.ts';

export interface ConnectionLimitOptions {
  /** Connections that may be open at once. */
  readonly max: number;
  /** Of one network; null for at most half of what the others leave. */
  readonly maxPerNetwork: number | null;
}

/** For each newcomer that finds no room. */
const mostLooks = 64;

/**
 * How many connections may be open, in all and for each network. Where a network may have no further one, a connection that
 * has no request under way makes room: of the network with the most where that has more than the newcomer's, else of the
 * newcomer's own, the one that has been idle for longest. A connection with a request under way makes room only
 * if all of the newcomer's network have one, and only if its body does not arrive.
 */
export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #held = new Holdings();
  readonly #open = new Set<Connection>();
  /** Of each network that has some, those without a request under way, in the order in which they became so. */
  readonly #idle = new Map<string, Set<Connection>>();
  /** Of each network, those with a request under way, in the order in which they are to be looked at. */
  readonly #busy = new Map<string, Set<Connection>>();
  /** The networks that have an idle one, by how many connections they have. */
  readonly #bySize = new Map<number, Set<string>>();

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Counts a new connection, which is idle. @returns false where there is no room for it */
  open(connection: Connection): boolean {
    const { network } = connection;
    if (!this.#mayOpen(network) && !this.#makeRoom(network)) return false;
    this.#open.add(connection);
    this.#resize(network, 1);
    this.markIdle(connection);
    return true;
  }

  close(connection: Connection): void {
    if (!this.#open.delete(connection)) return;
    this.#leaveIdle(connection);
    this.#leaveBusy(connection);
    this.#resize(connection.network, -1);
  }

  markIdle(connection: Connection): void {
    if (!this.#open.has(connection)) return;
    const { network } = connection;
    this.#leaveBusy(connection);
    const idle = this.#idle.get(network);
    if (idle !== undefined) {
      idle.add(connection);
      return;
    }
    this.#idle.set(network, new Set([connection]));
    this.#list(network);
  }

  markBusy(connection: Connection): void {
    this.#leaveIdle(connection);
    if (!this.#open.has(connection)) return;
    const busy = this.#busy.get(connection.network);
    if (busy === undefined) this.#busy.set(connection.network, new Set([connection]));
    else busy.add(connection);
  }

  #leaveBusy(connection: Connection): void {
    const { network } = connection;
    const busy = this.#busy.get(network);
    if (busy?.delete(connection) === true && busy.size === 0) this.#busy.delete(network);
  }

  #leaveIdle(connection: Connection): void {
    const { network } = connection;
    const idle = this.#idle.get(network);
    if (idle?.delete(connection) !== true || idle.size > 0) return;
    this.#idle.delete(network);
    this.#unlist(network);
  }

  #resize(network: string, by: number): void {
    this.#unlist(network);
    this.#held.change(network, by);
    if (this.#idle.has(network)) this.#list(network);
  }

  #list(network: string): void {
    const size = this.#held.of(network);
    const ofSize = this.#bySize.get(size);
    if (ofSize === undefined) this.#bySize.set(size, new Set([network]));
    else ofSize.add(network);
  }

  #unlist(network: string): void {
    const size = this.#held.of(network);
    const ofSize = this.#bySize.get(size);
    if (ofSize?.delete(network) === true && ofSize.size === 0) this.#bySize.delete(size);
  }

  #mayOpen(network: string): boolean {
    const { max, maxPerNetwork } = this.#options;
    if (this.#held.sum >= max) return false;
    return maxPerNetwork === null
      ? this.#held.isWithinShare(max, network, 0, 1)
      : this.#held.of(network) < maxPerNetwork;
  }

  /** Closes a connection, if that makes room for one of this network. @returns whether it did */
  #makeRoom(network: string): boolean {
    const [longest] = this.#idle.get(this.#chooseLoser(network)) ?? [];
    const loser = longest ?? this.#findSilent(network);
    if (loser === undefined) return false;
    this.close(loser);
    loser.socket.destroy();
    return true;
  }

  /** Those that were looked at and are not silent come last the next time. */
  #findSilent(network: string): Connection | undefined {
    const busy = this.#busy.get(network);
    if (busy === undefined) return undefined;
    const looked: Connection[] = [];
    const nowMs = performance.now();
    for (const connection of busy) {
      if (looked.length === mostLooks) break;
      if (isSilent(connection, nowMs)) return connection;
      looked.push(connection);
    }
    for (const connection of looked) {
      busy.delete(connection);
      busy.add(connection);
    }
    return undefined;
  }

  /** The network that gives a place: the largest where it stays no smaller than the newcomer's becomes, else its own. */
  #chooseLoser(network: string): string {
    const own = this.#held.of(network);
    if (own >= (this.#options.maxPerNetwork ?? Infinity)) return network;
    return this.#findLarger(own + 1) ?? network;
  }

  /**
   * The largest network with an idle connection, of those with more connections than this; null where there is none. Of
   * different sizes there are at most 181 among 16 384 connections, however many networks there are.
   */
  #findLarger(size: number): string | null {
    const largest = Math.max(...this.#bySize.keys());
    if (largest <= size) return null;
    const [network] = this.#bySize.get(largest)!;
    return network!;
  }
}
