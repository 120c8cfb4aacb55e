import { liveness } from '../../../shared/platform/redis/liveness.ts';
import { LuaScript } from '../../../shared/platform/redis/lua-script.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { formatRecord, parseSent, type SentAlerts, type SentRecord } from './sent-alerts.ts';

const claimScript = new LuaScript(new URL('./claim-alerts.lua', import.meta.url), [
  'lease',
  'sent',
  'process',
  'leaseMs',
]);
const releaseScript = new LuaScript(new URL('./release-alerts.lua', import.meta.url), ['lease', 'process']);

export interface AlertClaim {
  /** Whether this process sends the alerts. */
  readonly isHeld: boolean;
  readonly sent: SentAlerts;
}

/** Which api process sends alerts, and what it has sent. */
export class AlertStore {
  readonly #redis: RedisClient;
  readonly #processId: string;

  constructor(redis: RedisClient, processId: string) {
    this.#redis = redis;
    this.#processId = processId;
  }

  /** Takes or renews the lease, and reads what was sent. One round trip. */
  async claim(): Promise<AlertClaim> {
    const [holds, fields] = (await claimScript.run(this.#redis, {
      lease: redisKeys.alertLease,
      sent: redisKeys.sentAlerts,
      process: this.#processId,
      leaseMs: liveness.alerts.deadMs,
    })) as [number, string[]];
    return { isHeld: holds === 1, sent: parseSent(fields) };
  }

  async record(records: ReadonlyMap<string, SentRecord>): Promise<void> {
    const fields = Array.from(records, ([id, record]) => [id, formatRecord(record)]).flat();
    await this.#redis.hset(redisKeys.sentAlerts, ...fields);
  }

  /** Lets another process send alerts at once. */
  async release(): Promise<void> {
    await releaseScript.run(this.#redis, { lease: redisKeys.alertLease, process: this.#processId });
  }
}
