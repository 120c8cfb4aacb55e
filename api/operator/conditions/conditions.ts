import type { ConditionName } from '../../../shared/contract/condition-names.ts';

/** Facts about a problem, for the log. */
export type Fields = Readonly<Record<string, string | number>>;

/** The log lines of a condition: at error level when it begins, at info level when it ends. */
interface Lines {
  readonly begin: string;
  readonly end: string;
}

export const conditionLines: Readonly<Record<ConditionName, Lines>> = {
  redis_unreachable: { begin: 'Redis does not respond', end: 'Redis responds again' },
  redis_memory: { begin: 'Redis has no memory left', end: 'Redis has memory again' },
  redis_evicts: { begin: 'Redis may delete keys', end: 'Redis no longer deletes keys' },
  no_workers: { begin: 'no live worker for queue', end: 'queue has a live worker again' },
  worker_faults: { begin: 'workers report failures', end: 'workers report no failures any more' },
  ledger_behind: { begin: 'ledger is not written', end: 'ledger is written again' },
  ledger_dead_entries: {
    begin: 'ledger has entries that cannot be read',
    end: 'ledger has no entries any more that cannot be read',
  },
  mongodb_unreachable: { begin: 'MongoDB does not respond', end: 'MongoDB responds again' },
  storage_unreachable: { begin: 'object store does not respond', end: 'object store responds again' },
  upstream_key_refused: { begin: 'upstream refuses a key', end: 'upstream key no longer refused' },
};

/** A condition as a process sees it. */
export interface Condition {
  readonly name: ConditionName;
  /** Null until the process has looked long enough. */
  readonly isOn: boolean | null;
  /** When it began (ms); null unless it is on. */
  readonly sinceMs: number | null;
  /** What it concerns: names of queues or upstreams. Empty if it concerns the whole. */
  readonly subjects: readonly string[];
  /** Its problems by key, with when each began. */
  readonly problems: ReadonlyMap<string, ConditionProblem>;
}

/** One of the problems of a condition. */
export interface ConditionProblem {
  /** The queue or upstream that has it; empty for the whole. */
  readonly subject: string;
  /** When it began (Unix time, ms). */
  readonly sinceMs: number;
  /** Facts about its beginning. */
  readonly fields: Fields;
}
