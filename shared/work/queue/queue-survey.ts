import { LuaScript } from '../../platform/redis/lua-script.ts';
import type { RedisClient } from '../../platform/redis/redis-client.ts';
import { bullPrefix } from '../../platform/redis/redis-keys.ts';
import { lanes } from './fair-share.ts';
import { parseItemName } from './item-name.ts';
import { bullQueues } from './job-kinds.ts';
import { readyLists } from './ready-queue.ts';

const readyScript = new LuaScript(new URL('./survey-ready.lua', import.meta.url), ['maxRead', 'maxBytes'], {
  itemNames: ['list'],
});
const bullScript = new LuaScript(new URL('./survey-bull.lua', import.meta.url), ['maxRead'], {
  itemNames: ['wait', 'prioritized', 'itemPrefix'],
});

/** Items of a queue, or of each of its ends. */
const maxRead = 64;
/** Of each end of a queue whose items are read whole. They have up to 64 KB, and Redis does nothing else in the meantime. */
const maxBytes = 256 * 1024;

/** Requests with waiting callers that no worker has taken. */
export interface WaitingRequests {
  readonly count: number;
  /** When the first of them was admitted; milliseconds since the epoch. */
  readonly oldestAtMs: number;
}

/** By model. If more wait than are read, the counts are estimated from those that are. */
export type WaitingByModel = ReadonlyMap<string, WaitingRequests>;

interface ReadItem {
  readonly model: string;
  readonly requests: number;
  readonly atMs: number;
}

/** Counts the interactive chats that wait for a worker. */
export async function surveyReady(redis: RedisClient): Promise<WaitingByModel> {
  const items = lanes.map((lane) => ({ list: readyLists[lane] }));
  const reply = (await readyScript.run(redis, { maxRead, maxBytes }, items)) as [number, number, string[]][];
  return sum(
    reply.map(([length, blanks, read]) => {
      const known = toPairs(read).map(([model, atMs]) => ({ model, requests: 1, atMs }));
      // The blanks among the items that were not read are unknown.
      return { count: length - blanks, known };
    }),
  );
}

/** Counts the requests that wait in the BullMQ queues behind this name. */
export async function surveyBull(
  redis: RedisClient,
  queue: keyof typeof bullQueues,
): Promise<WaitingByModel> {
  const items = bullQueues[queue].map((name) => ({
    wait: `${bullPrefix}:${name}:wait`,
    prioritized: `${bullPrefix}:${name}:prioritized`,
    itemPrefix: `${bullPrefix}:${name}:`,
  }));
  const reply = (await bullScript.run(redis, { maxRead }, items)) as [number, string[]][];
  return sum(
    reply.map(([count, read]) => ({
      count,
      known: toPairs(read).map(([name, atMs]) => ({ ...parseItemName(name), atMs })),
    })),
  );
}

const toPairs = (flat: readonly string[]): (readonly [string, number])[] =>
  Array.from({ length: Math.floor(flat.length / 2) }, (_, i) => [flat[2 * i]!, Number(flat[2 * i + 1])]);

/** @param lists how many items each list has, and those of them that were read */
function sum(
  lists: readonly { readonly count: number; readonly known: readonly ReadItem[] }[],
): WaitingByModel {
  const byModel = new Map<string, WaitingRequests>();
  for (const { count, known } of lists) {
    const scale = known.length === 0 ? 0 : count / known.length;
    for (const { model, requests, atMs } of known) {
      const before = byModel.get(model) ?? { count: 0, oldestAtMs: Infinity };
      byModel.set(model, {
        count: before.count + requests * scale,
        oldestAtMs: Math.min(before.oldestAtMs, atMs),
      });
    }
  }
  return new Map(
    Array.from(byModel, ([model, { count, oldestAtMs }]) => [
      model,
      { count: Math.round(count), oldestAtMs },
    ]),
  );
}
