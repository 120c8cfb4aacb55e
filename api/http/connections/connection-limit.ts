// decision 0039
import { Holdings } from '../../../shared/fairness/holdings.ts';
import type { Connection } from './connection.ts';
import { isSilent } from './silent-body.ts';

export interface ConnectionLimitOptions {
  /** Maximum open connections. */
  readonly max: number;
  /** Maximum per network; null for at most half of the connections not held by other networks. */
  readonly maxPerNetwork: number | null;
}

/** Maximum number of busy connections checked for each new connection that exceeds the limit. */
const maxChecks = 64;

/**
 * Limits open connections, in total and per network. If the limit does not allow a new connection, the longest idle
 * connection (one without a request in progress) of the network with the most connections is closed to make room. If no
 * network has more connections than the new connection's own network, that network loses one. If all connections of the
 * chosen network are busy, one of them is closed only if its client has stopped sending the request body.
 */
export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #held = new Holdings();
  readonly #open = new Set<Connection>();
  /** Idle connections by network, longest idle first. */
  readonly #idle = new Map<string, Set<Connection>>();
  /** Connections with a request in progress, by network, in the order in which to check them. */
  readonly #busy = new Map<string, Set<Connection>>();
  /** Networks that have an idle connection, grouped by their total number of connections. */
  readonly #bySize = new Map<number, Set<string>>();

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Registers a new, idle connection. @returns false if the limit does not allow it */
  open(connection: Connection): boolean {
    const { network } = connection;
    if (!this.#mayOpen(network) && !this.#closeOneFor(network)) return false;
    this.#open.add(connection);
    this.#resize(network, 1);
    this.markIdle(connection);
    return true;
  }

  close(connection: Connection): void {
    if (!this.#open.delete(connection)) return;
    this.#removeIdle(connection);
    this.#removeBusy(connection);
    this.#resize(connection.network, -1);
  }

  markIdle(connection: Connection): void {
    if (!this.#open.has(connection)) return;
    const { network } = connection;
    this.#removeBusy(connection);
    const idle = this.#idle.get(network);
    if (idle !== undefined) {
      idle.add(connection);
      return;
    }
    this.#idle.set(network, new Set([connection]));
    this.#addToSizeIndex(network);
  }

  markBusy(connection: Connection): void {
    this.#removeIdle(connection);
    if (!this.#open.has(connection)) return;
    const busy = this.#busy.get(connection.network);
    if (busy === undefined) this.#busy.set(connection.network, new Set([connection]));
    else busy.add(connection);
  }

  #removeBusy(connection: Connection): void {
    const { network } = connection;
    const busy = this.#busy.get(network);
    if (busy?.delete(connection) === true && busy.size === 0) this.#busy.delete(network);
  }

  #removeIdle(connection: Connection): void {
    const { network } = connection;
    const idle = this.#idle.get(network);
    if (idle?.delete(connection) !== true || idle.size > 0) return;
    this.#idle.delete(network);
    this.#removeFromSizeIndex(network);
  }

  #resize(network: string, by: number): void {
    this.#removeFromSizeIndex(network);
    this.#held.change(network, by);
    if (this.#idle.has(network)) this.#addToSizeIndex(network);
  }

  #addToSizeIndex(network: string): void {
    const size = this.#held.of(network);
    const ofSize = this.#bySize.get(size);
    if (ofSize === undefined) this.#bySize.set(size, new Set([network]));
    else ofSize.add(network);
  }

  #removeFromSizeIndex(network: string): void {
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

  /** Closes a connection if that allows a new one of this network. @returns whether it did */
  #closeOneFor(network: string): boolean {
    const [longestIdle] = this.#idle.get(this.#chooseNetworkToShrink(network)) ?? [];
    const toClose = longestIdle ?? this.#findSilent(network);
    if (toClose === undefined) return false;
    this.close(toClose);
    toClose.socket.destroy();
    return true;
  }

  /**
   * Finds a busy connection whose client has stopped sending the body. Moves other checked connections to the end of
   * the network's list, so that the next call checks different ones.
   */
  #findSilent(network: string): Connection | undefined {
    const busy = this.#busy.get(network);
    if (busy === undefined) return undefined;
    const checked: Connection[] = [];
    const nowMs = performance.now();
    for (const connection of busy) {
      if (checked.length === maxChecks) break;
      if (isSilent(connection, nowMs)) return connection;
      checked.push(connection);
    }
    for (const connection of checked) {
      busy.delete(connection);
      busy.add(connection);
    }
    return undefined;
  }

  /**
   * Chooses the network that loses a connection: the largest, if it then still has at least as many as the new
   * connection's network; otherwise the new connection's network itself.
   */
  #chooseNetworkToShrink(network: string): string {
    const count = this.#held.of(network);
    if (count >= (this.#options.maxPerNetwork ?? Infinity)) return network;
    return this.#findLarger(count + 1) ?? network;
  }

  /**
   * Returns the largest network with an idle connection and more than `size` connections; null if there is none. The
   * search is short: networks of n different sizes have at least 1 + 2 + … + n connections, so 16 384 connections allow
   * at most 181 sizes.
   */
  #findLarger(size: number): string | null {
    const largest = Math.max(...this.#bySize.keys());
    if (largest <= size) return null;
    const [network] = this.#bySize.get(largest)!;
    return network!;
  }
}
