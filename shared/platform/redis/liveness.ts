/**
 * Every lease, lock and heartbeat: how long its owner may be silent before it counts as dead (`deadMs`), and how often it
 * reports (`reportMs`), in milliseconds. Redis keeps all of them. Several reports may be lost before an owner counts as
 * dead. Each comment says what depends on the time.
 */
export const liveness = {
  /**
   * A worker in the registry, and a holder of call slots. Callers of a dead worker get an error or run again, and its
   * call slots are freed.
   */
  worker: { reportMs: 1_000, deadMs: 5_000 },
  /**
   * A queue: callers get an error if no worker has taken work off it for this long, counted from the last heartbeat of
   * one. Restarting the workers takes less time.
   */
  queue: { unservedMs: 15_000 },
  /** A request that a process works on. Requests that take less time than a report are never reported. */
  request: { reportMs: 3_000, deadMs: 9_000 },
  /**
   * When the reservation of a dead request has been released: once three sweeps in a row, `request.reportMs` apart,
   * have found it. `ledger verify` reports an older one as a difference.
   */
  orphan: { releasedMs: 30_000 },
  /** How long a request may still be settled after its reservation was released. Longer than any request takes. */
  lateSettlement: { forgottenMs: 60 * 60_000 },
  /** A durable job that a worker runs. Another worker takes it afterwards. */
  job: { reportMs: 2_500, deadMs: 10_000 },
  /** An image, an embedding call, a mail or a webhook, which BullMQ gives to another worker afterwards. */
  queueItem: { deadMs: 10_000 },
  /**
   * A shard's ledger, jobs or reservations, which one worker at a time maintains. Two at once would only do the same
   * work twice. A batch may take longer.
   */
  shard: { reportMs: 1_000, deadMs: 5_000 },
  /** The api process that sends alerts. Another one sends them afterwards, and has to look at the state itself first. */
  alerts: { deadMs: 20_000 },
  /**
   * A call slot. It outlives `worker.deadMs`, after which others free the slots of a dead worker, and is only needed
   * if no worker is alive.
   */
  callSlot: { deadMs: 30_000 },
};
