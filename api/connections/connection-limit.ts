import { Holdings } from '../../shared/fairness/holdings.ts';
import type { Connection } from './connection.ts';

export interface ConnectionLimitOptions {
  /** Connections that may be open at once. */
  readonly max: number;
  /** Of one network; null for at most half of what the others leave. */
  readonly maxPerNetwork: number | null;
}

/**
 * How many connections may be open, in all and for each network. Where a network may have no further one, a connection that
 * has no request under way makes room: of the network with the most where that has more than the newcomer's, else of the
 * newcomer's own, the one that has been idle for longest. A connection with a request under way is never closed for another.
 */
export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #held = new Holdings();
  readonly #open = new Set<Connection>();
  /** By network, in the order in which they became idle. */
  readonly #idle = new Map<string, Set<Connection>>();

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
    this.#held.change(network, 1);
    this.#open.add(connection);
    this.markIdle(connection);
    return true;
  }

  close(connection: Connection): void {
    if (!this.#open.delete(connection)) return;
    this.#held.change(connection.network, -1);
    this.markBusy(connection);
  }

  markIdle(connection: Connection): void {
    if (!this.#open.has(connection)) return;
    const { network } = connection;
    const idle = this.#idle.get(network);
    if (idle === undefined) this.#idle.set(network, new Set([connection]));
    else idle.add(connection);
  }

  markBusy(connection: Connection): void {
    const { network } = connection;
    const idle = this.#idle.get(network);
    if (idle?.delete(connection) === true && idle.size === 0) this.#idle.delete(network);
  }

  #mayOpen(network: string): boolean {
    const { max, maxPerNetwork } = this.#options;
    if (this.#held.sum >= max) return false;
    return maxPerNetwork === null
      ? this.#held.isWithinShare(max, network, 0, 1)
      : this.#held.of(network) < maxPerNetwork;
  }

  /** Closes an idle connection, if that makes room for one of this network. @returns whether it did */
  #makeRoom(network: string): boolean {
    const [longest] = this.#idle.get(this.#chooseLoser(network)) ?? [];
    if (longest === undefined) return false;
    this.close(longest);
    longest.socket.destroy();
    return true;
  }

  /** The network that gives a place: the largest where it stays no smaller than the newcomer's becomes, else its own. */
  #chooseLoser(network: string): string {
    const own = this.#held.of(network);
    if (own >= (this.#options.maxPerNetwork ?? Infinity)) return network;
    const largest = this.#findLargest();
    return this.#held.of(largest) > own + 1 ? largest : network;
  }

  /** Of networks with idle connections, the one with the most connections of any kind. */
  #findLargest(): string {
    let largest = '';
    for (const network of this.#idle.keys())
      if (this.#held.of(network) > this.#held.of(largest)) largest = network;
    return largest;
  }
}
