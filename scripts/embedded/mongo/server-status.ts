import type { Doc } from './bson/document.ts';

type Counter = 'insert' | 'query' | 'update' | 'delete' | 'getmore' | 'command';

const counterOf: Record<string, Counter> = {
  insert: 'insert',
  find: 'query',
  update: 'update',
  delete: 'delete',
  getMore: 'getmore',
};

/** The state of this process that `hello` and `serverStatus` report. */
export class ServerStatus {
  readonly setName = 'embedded';
  address = '';
  connections = 0;
  #created = 0;
  readonly #startedAt = performance.now();
  readonly #counters = { insert: 0, query: 0, update: 0, delete: 0, getmore: 0, command: 0 };

  connect(): number {
    this.connections += 1;
    this.#created += 1;
    return this.#created;
  }

  disconnect(): void {
    this.connections -= 1;
  }

  /**
   * Counts a command. `statements` is the number of documents, updates or deletes in it, which MongoDB counts
   * individually.
   */
  count(command: string, statements: number): void {
    this.#counters[counterOf[command] ?? 'command'] += statements;
  }

  describe(): Doc {
    const uptime = (performance.now() - this.#startedAt) / 1000;
    const { connections, address } = this;
    return {
      host: address,
      version: serverVersion,
      process: 'embedded',
      pid: process.pid,
      uptime,
      connections: { current: connections, available: 10_000, totalCreated: this.#created },
      opcounters: { ...this.#counters },
      ok: 1,
    };
  }
}

export const serverVersion = '7.0.0';
