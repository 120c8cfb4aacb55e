import { Holdings } from '../../shared/fairness/holdings.ts';
import type { Connection } from './connection.ts';

export interface ConnectionLimitOptions {
  /** Connections that may be open at once. */
  readonly max: number;
  /** Of one network; null for at most half of what the others leave. */
  readonly maxPerNetwork: number | null;
}

/**
 * How many connections may be open, in all and for each network. Where there is no room for another, one that has no
 * request under way makes it: of the caller's own network if that has its share, else of the network with the most
 * connections, the one that has been idle for longest. A connection with a request under way is never closed for another.
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
    if (!this.#mayOpen(network) && !(this.#makeRoom(network) && this.#mayOpen(network))) return false;
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

  #makeRoom(network: string): boolean {
    const isFull = this.#held.sum >= this.#options.max;
    const [longest] = this.#idle.get(isFull ? this.#findLargest() : network) ?? [];
    if (longest === undefined) return false;
    this.close(longest);
    longest.socket.destroy();
    return true;
  }

  /** Of networks with idle connections, the one with the most connections of any kind. */
  #findLargest(): string {
    let largest = '';
    for (const network of this.#idle.keys())
      if (this.#held.of(network) > this.#held.of(largest)) largest = network;
    return largest;
  }
}
