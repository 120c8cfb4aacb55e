import { LuaScript } from '../../platform/redis/lua-script.ts';
import type { RedisClient } from '../../platform/redis/redis-client.ts';
import { redisChannels, redisKeys } from '../../platform/redis/redis-keys.ts';
import {
  maxVirtualTime,
  turnUnits,
  type HeldJobs,
  type JobTurn,
  type TurnLine,
  type TurnQueue,
} from './job-line.ts';

/** How long an empty queue keeps its pending turns, and the start tags that are later than its virtual time. */
const emptyQueueMs = 60_000;

const keyNames = ['models', 'index', 'turnsPrefix', 'idlePrefix', 'accountsPrefix'] as const;
const constants = { emptyQueueMs, jobsAddedPrefix: redisChannels.jobsAdded(''), turnUnits };

const addScript = new LuaScript(
  new URL('./add-turn.lua', import.meta.url),
  [...keyNames, 'model', 'accountId', 'weight'],
  { constants },
);
const takeScript = new LuaScript(
  new URL('./take-turns.lua', import.meta.url),
  [...keyNames, 'count', 'capacitiesText', 'heldText'],
  { constants: { ...constants, maxVirtualTime } },
);
const settleScript = new LuaScript(
  new URL('./settle-turn.lua', import.meta.url),
  [...keyNames, 'model', 'accountId', 'weight', 'adds', 'remaining', 'isUsed'],
  { constants },
);
const syncScript = new LuaScript(
  new URL('./sync-turns.lua', import.meta.url),
  [...keyNames, 'model', 'accountId', 'weight', 'counted'],
  { constants },
);
const dropScript = new LuaScript(
  new URL('./drop-turn.lua', import.meta.url),
  [...keyNames, 'model', 'accountId'],
  { constants },
);

const keysOf = (queue: TurnQueue) => ({
  models: redisKeys.jobModels(queue),
  index: redisKeys.jobIndex(queue),
  turnsPrefix: redisKeys.jobTurns(queue, ''),
  idlePrefix: redisKeys.jobIdle(queue, ''),
  accountsPrefix: redisKeys.jobAccounts(queue, ''),
});

export async function runAdd(
  redis: RedisClient,
  { queue, model }: TurnLine,
  accountId: string,
  weight: number,
): Promise<void> {
  await addScript.run(redis, { ...keysOf(queue), model, accountId, weight });
}

function formatHeld(held: HeldJobs): string {
  const byModel = Array.from(held, ([model, heldByAccount]) => [model, Object.fromEntries(heldByAccount)]);
  return JSON.stringify(Object.fromEntries(byModel));
}

export async function runTake(
  redis: RedisClient,
  queue: TurnQueue,
  count: number,
  capacities: ReadonlyMap<string, number>,
  held: HeldJobs | null,
): Promise<JobTurn[]> {
  const values = {
    ...keysOf(queue),
    count,
    capacitiesText: JSON.stringify(Object.fromEntries(capacities)),
    heldText: held === null ? '' : formatHeld(held),
  };
  const reply = (await takeScript.run(redis, values)) as (string | number)[];
  const turns: JobTurn[] = [];
  for (let i = 0; i < reply.length; i += 4) {
    const [model, accountId, weight, adds] = reply.slice(i, i + 4);
    turns.push({
      model: String(model),
      accountId: String(accountId),
      weight: Number(weight),
      adds: Number(adds),
    });
  }
  return turns;
}

export async function runSettle(
  redis: RedisClient,
  queue: TurnQueue,
  { model, accountId, weight, adds }: JobTurn,
  remaining: number,
  isUsed: boolean,
): Promise<void> {
  const values = { model, accountId, weight, adds, remaining, isUsed: isUsed ? 1 : 0 };
  await settleScript.run(redis, { ...keysOf(queue), ...values });
}

export async function runSync(
  redis: RedisClient,
  { queue, model }: TurnLine,
  accountId: string,
  weight: number,
  waiting: number,
): Promise<void> {
  await syncScript.run(redis, { ...keysOf(queue), model, accountId, weight, counted: waiting });
}

export async function runDrop(
  redis: RedisClient,
  { queue, model }: TurnLine,
  accountId: string,
): Promise<void> {
  await dropScript.run(redis, { ...keysOf(queue), model, accountId });
}
