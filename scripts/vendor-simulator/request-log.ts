/** One call as received by the simulator. */
export interface LoggedRequest {
  readonly method: string;
  readonly path: string;
  readonly model: string | null;
  readonly key: string | null;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The parsed body. Null if bodies are not kept. */
  readonly body: Readonly<Record<string, unknown>> | null;
  /** The number of texts to embed. Null if the call is not for embeddings. */
  readonly inputs: number | null;
  /** The status of the response. Null until it is sent. */
  status: number | null;
  /** Whether the caller disconnected before the response was complete. */
  isAborted: boolean;
  /** Whether the call has finished, so that nothing more will be sent. */
  isOver: boolean;
}

export interface RequestCounters {
  total: number;
  /** Calls whose caller disconnected before the response was complete. */
  aborted: number;
  readonly byStatus: Record<number, number>;
  readonly byModel: Record<string, number>;
}

export interface RequestLog {
  readonly counters: Readonly<RequestCounters>;
  /** The latest requests, oldest first. */
  readonly entries: readonly LoggedRequest[];
  /** Resolves with the first matching entry: an existing one, or the next that matches. */
  waitFor(matches: (entry: LoggedRequest) => boolean): Promise<LoggedRequest>;
  clear(): void;
}

export interface WritableRequestLog extends RequestLog {
  add(entry: LoggedRequest): void;
  /** Updates an entry when it has a response or its caller has disconnected. */
  update(entry: LoggedRequest, change: Partial<Pick<LoggedRequest, 'status' | 'isAborted' | 'isOver'>>): void;
}

/**
 * Creates a log that counts every request and keeps the latest ones. With `capacity` 0 it only counts, for
 * measurements.
 */
export function createRequestLog(capacity: number): WritableRequestLog {
  const counters: RequestCounters = { total: 0, aborted: 0, byStatus: {}, byModel: {} };
  const entries: LoggedRequest[] = [];
  const pendingMatches = new Set<{
    matches(entry: LoggedRequest): boolean;
    resolve(entry: LoggedRequest): void;
  }>();

  function notify(entry: LoggedRequest): void {
    for (const pending of pendingMatches) {
      if (pending.matches(entry)) {
        pendingMatches.delete(pending);
        pending.resolve(entry);
      }
    }
  }

  return {
    counters,
    entries,
    waitFor(matches) {
      const existing = entries.find(matches);
      if (existing !== undefined) {
        return Promise.resolve(existing);
      }
      return new Promise((resolve) => {
        pendingMatches.add({ matches, resolve });
      });
    },
    clear() {
      entries.length = 0;
      counters.total = 0;
      counters.aborted = 0;
      clearCounts(counters.byStatus);
      clearCounts(counters.byModel);
    },
    add(entry) {
      counters.total += 1;
      if (entry.model !== null) {
        countUp(counters.byModel, entry.model);
      }
      if (capacity > 0) {
        if (entries.length >= capacity) {
          entries.shift();
        }
        entries.push(entry);
        notify(entry);
      }
    },
    update(entry, change) {
      Object.assign(entry, change);
      if (change.status !== undefined && change.status !== null) {
        countUp(counters.byStatus, change.status);
      }
      if (change.isAborted === true) {
        counters.aborted += 1;
      }
      notify(entry);
    },
  };
}

/** Handles a model named `constructor`, a property that every object inherits. */
function countUp(counts: Record<number | string, number>, name: number | string): void {
  counts[name] = (Object.hasOwn(counts, name) ? counts[name]! : 0) + 1;
}

function clearCounts(counts: Record<number | string, number>): void {
  for (const name of Object.keys(counts)) {
    delete counts[name];
  }
}
