// decision 0090
import { setTimeout as delay } from 'node:timers/promises';
import type { ConditionName } from '../../../shared/contract/condition-names.ts';
import { liveness } from '../../../shared/platform/redis/liveness.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import { within } from '../../../shared/platform/runtime/within.ts';
import type { Condition } from '../conditions/conditions.ts';
import { describeBegin, describeEnd, type Alert } from './alert.ts';
import { listConcerns, type Concern } from './concerns.ts';
import type { AlertClaim, AlertStore } from './alert-store.ts';
import type { AlertTarget } from './alert-targets.ts';
import { findDue, neverSent, type SentRecord } from './sent-alerts.ts';

/** At most one alert of each kind and condition is sent in this time. */
const defaultIntervalMs = 60 * 60_000;
/** Pauses between the attempts to reach a target. */
const defaultPausesMs: readonly number[] = [1_000, 5_000];
/** When an alert that no target has accepted is sent again. */
const retryMs = 60_000;
const claimTimeoutMs = 2_000;
/** Time that a stopping process has to finish what it sends. */
const stopTimeoutMs = 3_000;

export interface AlertSenderOptions {
  readonly store: Pick<AlertStore, 'claim' | 'record' | 'release'>;
  readonly targets: readonly AlertTarget[];
  readonly log: Logger;
  readonly intervalMs?: number;
  readonly pausesMs?: readonly number[];
  /** Unix time in milliseconds; `Date.now` by default. */
  readonly nowMs?: () => number;
}

/**
 * This condition concerns the connection of one process, which cannot tell others about it. So each process sends its
 * own alerts, and remembers them by itself.
 */
const ownName: ConditionName = 'redis_unreachable';
/** @param id of an alert, or the name of its condition, which are the same for this one */
const isOwn = (id: string): boolean => id === ownName;

/**
 * Tells operators which conditions begin and end. The process that holds the lease sends, and Redis remembers what was
 * sent, so a restart or another holder repeats nothing. If Redis gives no lease for a while, each process sends what it
 * sees.
 */
export class AlertSender {
  readonly #store: AlertSenderOptions['store'];
  readonly #targets: readonly AlertTarget[];
  readonly #log: Logger;
  readonly #intervalMs: number;
  readonly #pausesMs: readonly number[];
  readonly #nowMs: () => number;
  readonly #sent = new Map<string, SentRecord>();
  /** Alerts whose record is newer here than in Redis. */
  readonly #unsaved = new Set<string>();
  readonly #sending = new Map<string, Promise<void>>();
  readonly #retryAtMs = new Map<string, number>();
  /** Beginnings that the interval holds back. */
  readonly #heldBack = new Set<string>();
  readonly #stopping = new AbortController();
  #claimedAtMs: number;
  #isUpdating = false;
  #isStopped = false;

  constructor({ store, targets, log, intervalMs, pausesMs, nowMs }: AlertSenderOptions) {
    this.#store = store;
    this.#targets = targets;
    this.#log = log;
    this.#intervalMs = intervalMs ?? defaultIntervalMs;
    this.#pausesMs = pausesMs ?? defaultPausesMs;
    this.#nowMs = nowMs ?? Date.now;
    this.#claimedAtMs = this.#nowMs();
  }

  /** Starts to send the alerts that are due. Call this again and again: it also renews the lease. */
  async update(conditions: readonly Condition[]): Promise<void> {
    if (this.#isUpdating || this.#isStopped) return;
    this.#isUpdating = true;
    try {
      const sendsAll = await this.#claim();
      if (this.#isStopped) return;
      for (const condition of conditions) {
        if (!sendsAll && !isOwn(condition.name)) continue;
        for (const concern of listConcerns(condition, this.#sent)) this.#startIfDue(concern);
      }
    } finally {
      this.#isUpdating = false;
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await within(stopTimeoutMs, Promise.all(this.#sending.values()), () => this.#stopping.abort());
    await Promise.all(this.#sending.values());
    // The lease expires by itself.
    await within(stopTimeoutMs, this.#store.release(), () => undefined).catch(() => undefined);
  }

  /** @returns whether this process sends the alerts of all conditions */
  async #claim(): Promise<boolean> {
    let claim: AlertClaim;
    try {
      claim = await within(claimTimeoutMs, this.#store.claim(), () => {
        throw new Error(`Redis did not respond within ${claimTimeoutMs} ms`);
      });
    } catch (error) {
      this.#log.debug({ err: error }, 'claiming the alerts failed');
      // Until then, another process may still hold the lease.
      return this.#nowMs() - this.#claimedAtMs > liveness.alerts.deadMs;
    }
    this.#claimedAtMs = this.#nowMs();
    for (const [id, record] of claim.sent) {
      // It may have been read before this process stored its own, or Redis may have lost that.
      if (isOwn(id) || isNewer(this.#sent.get(id), record)) continue;
      this.#sent.set(id, record);
      this.#unsaved.delete(id);
    }
    await this.#save();
    return claim.isHeld;
  }

  #startIfDue(concern: Concern): void {
    const { id, isOn, sinceMs } = concern;
    const nowMs = this.#nowMs();
    if (this.#sending.has(id) || nowMs < (this.#retryAtMs.get(id) ?? 0)) return;
    const sent = this.#sent.get(id) ?? neverSent;
    const due = findDue(isOn, sent, nowMs, this.#intervalMs);
    this.#noteHeldBack(concern, sent, due);
    if (due === null) return;
    const isBegin = due === 'begin';
    const alert = isBegin ? describeBegin(concern, sinceMs ?? nowMs) : describeEnd(concern, sent.sinceMs);
    const record: SentRecord = isBegin
      ? { ...sent, isOn: true, sinceMs: sinceMs ?? nowMs, beganAtMs: nowMs }
      : { ...sent, isOn: false, endedAtMs: nowMs };
    const sending = this.#send(id, alert, record).finally(() => this.#sending.delete(id));
    this.#sending.set(id, sending);
    runInBackground(sending, 'sending an alert', this.#log);
  }

  /** Says once that operators are not told of a beginning before the interval is over. */
  #noteHeldBack({ id, name, isOn }: Concern, sent: SentRecord, due: 'begin' | 'end' | null): void {
    if (isOn !== true || sent.isOn || due !== null) {
      this.#heldBack.delete(id);
      return;
    }
    if (this.#heldBack.has(id)) return;
    this.#heldBack.add(id);
    const until = new Date(sent.beganAtMs + this.#intervalMs).toISOString();
    this.#log.warn({ condition: name, until }, 'alert held back: its last one is too recent');
  }

  async #send(id: string, alert: Alert, record: SentRecord): Promise<void> {
    const { condition, type } = alert.body;
    const accepted = await Promise.all(this.#targets.map((target) => this.#deliver(target, alert)));
    if (!accepted.includes(true)) {
      this.#retryAtMs.set(id, this.#nowMs() + retryMs);
      return;
    }
    this.#log.info({ condition, type }, 'alert sent');
    this.#sent.set(id, record);
    if (isOwn(condition)) return;
    this.#unsaved.add(id);
    await this.#save();
  }

  /** @returns whether the target has accepted the alert */
  async #deliver(target: AlertTarget, alert: Alert): Promise<boolean> {
    const { signal } = this.#stopping;
    for (let attempt = 0; ; attempt++) {
      try {
        await target.send(alert, signal);
        return true;
      } catch (error) {
        const pauseMs = this.#pausesMs[attempt];
        if (pauseMs === undefined || signal.aborted) {
          const { condition, type } = alert.body;
          const reason = error instanceof Error ? error.message : String(error);
          this.#log.warn({ condition, type, target: target.name, reason }, 'alert not delivered');
          return false;
        }
        // Fails if this process stops. The next attempt then fails too, and is the last one.
        await delay(pauseMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  /** Stores what is only known here. If that fails, the next update tries again. */
  async #save(): Promise<void> {
    if (this.#unsaved.size === 0) return;
    const records = new Map([...this.#unsaved].map((id) => [id, this.#sent.get(id)!]));
    try {
      await within(claimTimeoutMs, this.#store.record(records), () => {
        throw new Error(`Redis did not respond within ${claimTimeoutMs} ms`);
      });
    } catch (error) {
      this.#log.debug({ err: error }, 'storing what alerts were sent failed');
      return;
    }
    for (const [id, record] of records) if (this.#sent.get(id) === record) this.#unsaved.delete(id);
  }
}

function isNewer(own: SentRecord | undefined, stored: SentRecord): boolean {
  const lastAtMs = ({ beganAtMs, endedAtMs }: SentRecord): number => Math.max(beganAtMs, endedAtMs);
  return own !== undefined && lastAtMs(own) > lastAtMs(stored);
}
