import { createHmac, randomInt } from 'node:crypto';
import { v4 as createUuid, validate as isUuid } from 'uuid';
import { callRedis, RedisScript, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { deriveKey } from '../../shared/web/derive-key.ts';

export type CodePurpose = 'login' | 'signup' | 'unlink' | 'reveal' | 'regenerate';

export const codeLifetimeSeconds = 600;
const maxAttempts = 5;
const codeLength = 6;

export interface CodeRequest {
  readonly purpose: CodePurpose;
  /** A normalised address. */
  readonly email: string;
  /** Whose action the code confirms, and on what: `userId:linkId`. Empty for signing in. */
  readonly subject: string;
}

export interface IssuedCode {
  readonly challengeId: string;
  /** To be mailed, and told nobody else. */
  readonly code: string;
  readonly expiresAt: Date;
}

export interface ExpectedCode {
  readonly purposes: readonly CodePurpose[];
  readonly subject: string;
}

export interface AcceptedCode {
  readonly purpose: CodePurpose;
  readonly email: string;
}

const createScript = new RedisScript(`
redis.call('HSET', KEYS[1], 'purpose', ARGV[1], 'subject', ARGV[2], 'email', ARGV[3], 'mac', ARGV[4], 'attempts', 0)
redis.call('EXPIRE', KEYS[1], ARGV[5])
`);

/**
 * The code goes with the attempt that gets it right, or with the last that does not. For another purpose or subject the
 * challenge does not exist: its code is not compared, so that nothing is learnt of it, and no attempt is used up, so that
 * nobody spoils the code of another. A comparison that stops early tells nothing, as nobody can choose the MAC.
 */
const verifyScript = new RedisScript(`
local purpose, subject, email, mac = unpack(redis.call('HMGET', KEYS[1], 'purpose', 'subject', 'email', 'mac'))
if not purpose or subject ~= ARGV[3] then return false end
local isExpected = false
for index = 4, #ARGV do isExpected = isExpected or ARGV[index] == purpose end
if not isExpected then return false end

local attempts = redis.call('HINCRBY', KEYS[1], 'attempts', 1)
local isRight = mac == ARGV[1]
if isRight or attempts >= tonumber(ARGV[2]) then redis.call('DEL', KEYS[1]) end
return isRight and {purpose, email}
`);

/**
 * Codes that are on their way to a mailbox. A code has six digits and five attempts, so whoever guesses gets in once in
 * 200 000 challenges; it is kept as a MAC, because a plain hash of six digits is undone by trying them all.
 */
export class EmailCodeStore {
  readonly #redis: RedisClient;
  readonly #macKey: Buffer;

  constructor(redis: RedisClient, masterKey: string) {
    this.#redis = redis;
    this.#macKey = deriveKey(masterKey, 'email codes');
  }

  async create({ purpose, email, subject }: CodeRequest): Promise<IssuedCode> {
    const challengeId = createUuid();
    const code = String(randomInt(10 ** codeLength)).padStart(codeLength, '0');
    const expiresAt = new Date(Date.now() + codeLifetimeSeconds * 1_000);
    const values = [purpose, subject, email, this.#mac(challengeId, code), codeLifetimeSeconds];
    await callRedis(() => createScript.run(this.#redis, [redisKeys.emailCode(challengeId)], values));
    return { challengeId, code, expiresAt };
  }

  /**
   * Uses an attempt, and the code where it is right. Whatever else the text is, it is a wrong code.
   * @returns null where the challenge is unknown, used, expired or another's, or the code is wrong: nobody is told which
   */
  async verify(challengeId: string, code: string, expected: ExpectedCode): Promise<AcceptedCode | null> {
    if (!isUuid(challengeId)) return null;
    const id = challengeId.toLowerCase();
    const values = [this.#mac(id, code), maxAttempts, expected.subject, ...expected.purposes];
    const reply = await callRedis(() => verifyScript.run(this.#redis, [redisKeys.emailCode(id)], values));
    if (reply === null) return null;
    const [purpose, email] = reply as [CodePurpose, string];
    return { purpose, email };
  }

  /** For a code that cannot be mailed. */
  async discard(challengeId: string): Promise<void> {
    await callRedis(() => this.#redis.del(redisKeys.emailCode(challengeId)));
  }

  /** Over the challenge as well, so that equal codes look different. */
  #mac(challengeId: string, code: string): string {
    return createHmac('sha256', this.#macKey).update(`${challengeId}:${code}`).digest('base64url');
  }
}
