import { RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import type { Logger } from '../runtime/logger.ts';

/** A conversation that continues later than this does so without its reasoning. */
const keptSeconds = 6 * 60 * 60;
const maxValueBytes = 256 * 1024;
/** Of one request; the reasoning of the latest turns is what vendors ask for. */
const maxLoadedCalls = 256;
const maxLoadedBytes = 4 * 1024 * 1024;

/**
 * A call is kept once for each set of instructions that it was made under. A vendor that numbers its calls anew in every
 * answer makes the same call for the same words of two end users, and only the instructions tell who they are. While there
 * is one set alone, its value stands under the hash of the call, behind the hash of the instructions; `*` there says that
 * there are several, each under a key of its own.
 */
const several = '*';
const instructionsHashLength = 32;

const saveScript = new RedisScript(`
local key, instructions, value, seconds = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local known = redis.call('GET', key)
local others = known and string.sub(known, 1, ${instructionsHashLength})
if not known or others == instructions then
  redis.call('SET', key, instructions .. value, 'EX', seconds)
  return 1
end
if known ~= '${several}' then
  redis.call('SET', key .. ':' .. others, string.sub(known, ${instructionsHashLength + 1}), 'EX', seconds)
end
redis.call('SET', key, '${several}', 'EX', seconds)
redis.call('SET', key .. ':' .. instructions, value, 'EX', seconds)
return 1
`);

/** Reads until the bound is reached, in the order of the keys, and keeps what it read for longer. */
const loadScript = new RedisScript(`
local maxBytes, seconds = tonumber(ARGV[1]), ARGV[2]
local found, bytes = {}, 0
for i, key in ipairs(KEYS) do
  local value = redis.call('GET', key)
  if value == '${several}' then
    redis.call('EXPIRE', key, seconds)
    key = key .. ':' .. ARGV[i + 2]
    value = redis.call('GET', key)
  elseif value then
    value = string.sub(value, ${instructionsHashLength + 1})
  end
  if value then
    bytes = bytes + #value
    if bytes > maxBytes then break end
    redis.call('EXPIRE', key, seconds)
    found[#found + 1] = i
    found[#found + 1] = value
  end
end
return found
`);

/** A tool call, by the hashes of the conversation that it was made in. */
export interface KeptCall {
  /** As `hashCall` makes it. */
  readonly hash: string;
  /** As `hashInstructions` makes it. */
  readonly instructionsHash: string;
}

/** With the tool call that it led to. */
export interface SavedReasoning extends KeptCall {
  readonly value: object;
}

/**
 * What vendors want back of their earlier answers (thinking with its signature) and OpenAI's clients drop, by account
 * and by the hashes of a tool call. Losing it fails no request, so an outage of Redis is no failure here either.
 */
export class ReasoningStore {
  readonly #redis: RedisClient;
  readonly #log: Logger;

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  async save(accountId: string, saved: readonly SavedReasoning[]): Promise<void> {
    try {
      await Promise.all(saved.map((one) => this.#save(accountId, one)));
    } catch (error) {
      this.#log.debug({ err: error }, 'reasoning not saved');
    }
  }

  /**
   * @param calls oldest first
   * @returns the values by their hashes, as many of the latest as fit the bounds
   */
  async load(accountId: string, calls: readonly KeptCall[]): Promise<ReadonlyMap<string, unknown>> {
    const instructionsOf = new Map(calls.map((call) => [call.hash, call.instructionsHash]));
    const latestFirst = [...instructionsOf.keys()].slice(-maxLoadedCalls).toReversed();
    if (latestFirst.length === 0) return new Map();
    const keys = latestFirst.map((hash) => redisKeys.reasoning(accountId, hash));
    try {
      const instructions = latestFirst.map((hash) => instructionsOf.get(hash)!);
      const args = [maxLoadedBytes, keptSeconds, ...instructions];
      const found = (await loadScript.run(this.#redis, keys, args)) as unknown[];
      return new Map(readPairs(found, latestFirst));
    } catch (error) {
      this.#log.debug({ err: error }, 'reasoning not loaded');
      return new Map();
    }
  }

  async #save(accountId: string, { hash, instructionsHash, value }: SavedReasoning): Promise<void> {
    const text = JSON.stringify(value);
    if (Buffer.byteLength(text) > maxValueBytes) return;
    const key = redisKeys.reasoning(accountId, hash);
    await saveScript.run(this.#redis, [key], [instructionsHash, text, keptSeconds]);
  }
}

/** The script answers with places in its list of keys, each followed by its value. */
function* readPairs(found: readonly unknown[], hashes: readonly string[]): Generator<[string, unknown]> {
  for (let at = 0; at < found.length; at += 2) {
    yield [hashes[Number(found[at]) - 1]!, JSON.parse(String(found[at + 1]))];
  }
}
