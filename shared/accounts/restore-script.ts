// decisions 0015, 0062, 0096
import type { AccountDocument } from './account-store.ts';
import { toBudgetFields, toSettingFields } from './account-settings.ts';
import { parseDay } from './budget-periods.ts';
import { readJobSettings } from './job-settings.ts';
import { formatStreamId, isAfter, type StreamId } from '../ledger/usage-event.ts';
import { LuaScript } from '../platform/redis/lua-script.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../platform/redis/redis-keys.ts';

const script = new LuaScript(
  new URL('./restore.lua', import.meta.url),
  [
    'account',
    'reservations',
    'stream',
    'window',
    'trimmed',
    'recovering',
    'jobsHeld',
    'tokenWindow',
    'accountId',
    'mode',
    'lastSeen',
    'from',
    'checkpoint',
    'maxEntries',
  ],
  { itemNames: ['field', 'value'], constants: { maxSafeInteger: Number.MAX_SAFE_INTEGER } },
);

/** Scanning this many entries takes Redis a few milliseconds, during which all other commands wait. */
const defaultEntriesPerRun = 500;

/**
 * - `present`: the account is already in Redis, or it is not and only its budgets were to be written
 * - `stale`: the ledger has moved on since MongoDB was read; read it again
 * - `recovering`: the shard has lost data in Redis; a batch that was being written to MongoDB will
 *   arrive there in a moment
 */
export type RestoreOutcome = 'restored' | 'present' | 'stale' | 'recovering';

type RestoreReply =
  | [outcome: RestoreOutcome]
  | [outcome: 'more', last: string, ...changedFieldsAndValues: string[]];

/**
 * - `load`: writes an account that is not in Redis
 * - `replace`: also replaces one that is; only for an account known to be older than MongoDB's copy
 * - `budgets`: writes only the budgets of an account in Redis, with their sums
 */
export type RestoreMode = 'load' | 'replace' | 'budgets';

export interface RestoreRequest {
  readonly account: AccountDocument;
  /** Id of the last entry trimmed from the shard's stream, read from Redis before MongoDB; '' if none was trimmed. */
  readonly trimmed: string;
  /** The shard's checkpoint in MongoDB. */
  readonly checkpoint: StreamId;
  readonly mode: RestoreMode;
  /** How many stream entries one execution of the script scans. */
  readonly entriesPerRun?: number | undefined;
}

/**
 * Loads the account. If several processes do so, the first to reach the end of the stream writes it. A process that
 * dies before that leaves nothing behind.
 */
export async function runRestore(redis: RedisClient, request: RestoreRequest): Promise<RestoreOutcome> {
  const { account, trimmed, checkpoint, mode, entriesPerRun = defaultEntriesPerRun } = request;
  const shard = shardOf(account._id);
  const fields = new Map(Object.entries(toFields(account)));
  const applied = { ms: account.appliedMs, seq: account.appliedSeq };
  // The sums may include a batch that never reached its checkpoint.
  const end = isAfter(applied, checkpoint) ? applied : checkpoint;
  const values = {
    account: redisKeys.account(account._id),
    reservations: redisKeys.reservations(shard),
    stream: redisKeys.ledgerStream(shard),
    window: redisKeys.rpmWindow(account._id),
    trimmed: redisKeys.ledgerTrimmed(shard),
    recovering: redisKeys.ledgerRecovering(shard),
    jobsHeld: redisKeys.jobsHeld(account._id),
    tokenWindow: redisKeys.tokenWindow(account._id),
    accountId: account._id,
    mode,
    checkpoint: formatStreamId(end),
    maxEntries: entriesPerRun,
  };
  let [lastSeen, from] = [trimmed, formatStreamId(applied)];
  for (;;) {
    const items = Array.from(fields, ([field, value]) => ({ field, value }));
    const [outcome, last, ...sums] = (await script.run(
      redis,
      { ...values, lastSeen, from },
      items,
    )) as RestoreReply;
    if (outcome !== 'more') return outcome;
    [lastSeen, from] = [last, last];
    for (let i = 0; i + 1 < sums.length; i += 2) fields.set(sums[i]!, sums[i + 1]!);
  }
}

/** The fields that are copied whenever they change in MongoDB; '' for one that is absent. Budgets are copied separately. */
export function toCopiedFields(account: AccountDocument): Readonly<Record<string, string>> {
  const { maxQueuedJobs, weight } = readJobSettings(account);
  return {
    key: account.keyHash,
    rpm: String(account.requestsPerMinute),
    mqj: String(maxQueuedJobs),
    wgt: String(weight),
    ban: account.banned ? '1' : '0',
    ...toSettingFields(account),
  };
}

function toFields(account: AccountDocument): Record<string, string> {
  const budgets = toBudgetFields(account);
  const fields = {
    ...toCopiedFields(account),
    ...budgets,
    type: account.userType,
    created: String(account.createdAt.getTime()),
    bal: account.balanceNano.toString(),
    added: account.totalAddedNano.toString(),
    free: String(account.freeRequests),
    charges: String(account.charges),
    codes: String(account.codes),
  };
  const present = Object.entries(fields).filter(([, value]) => value !== '');
  const hasBudget = Object.values(budgets).some((budget) => budget !== '');
  return { ...Object.fromEntries(present), ...(hasBudget && { days: writeDays(account) }) };
}

/** What was spent by day, as restore.lua reads it. */
const writeDays = ({ spentByDay = {} }: AccountDocument): string =>
  Object.entries(spentByDay)
    .map(([day, spentNano]) => `${parseDay(day)}:${spentNano}`)
    .join(' ');
