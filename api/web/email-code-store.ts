import { createHmac, randomInt } from 'node:crypto';
import { v4 as createUuid, validate as isUuid } from 'uuid';
import { decryptSecret, encryptSecret } from '../../shared/accounts/credentials.ts';
import { codeLifetimeSeconds, maxCodeAttempts, type SignInPurpose } from '../../shared/contract/web-auth.ts';
import { callRedis, RedisScript, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { deriveKey } from '../../shared/web/derive-key.ts';
import type { ConfirmedAction } from '../../shared/web/mail.ts';

export type CodePurpose = SignInPurpose | ConfirmedAction;

const codeLength = 6;

export interface CodeRequest {
  readonly purpose: CodePurpose;
  /** A normalized address. */
  readonly email: string;
  /** What the code is bound to: the user, the link and, for actions on the key, the key's hash. Empty for sign-in. */
  readonly subject: string;
}

interface SealedChallenge extends CodeRequest {
  readonly challengeId: string;
}

export interface IssuedCode {
  readonly challengeId: string;
  /** For the mail only; never part of a response. */
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

export type CodeVerification =
  | (AcceptedCode & { readonly outcome: 'right' })
  /** The code differs from the mailed one. */
  | { readonly outcome: 'wrong' }
  /** The code was not compared: the challenge never existed, is used up, has expired or is for something else. */
  | { readonly outcome: 'unknown' };

const createScript = new RedisScript(`
redis.call('HSET', KEYS[1], 'purpose', ARGV[1], 'subject', ARGV[2], 'sealed', ARGV[3], 'mac', ARGV[4], 'attempts', 0)
redis.call('EXPIRE', KEYS[1], ARGV[5])
`);

/**
 * Deletes the challenge when the code is right, and at the last wrong attempt. If the purpose or subject differs, the
 * challenge is treated as unknown: the code is not compared, so the attempt reveals nothing about it, and no attempt is
 * used up, so nobody can invalidate another user's code. The MACs need not be compared in constant time, because a
 * caller cannot choose or predict them.
 */
const verifyScript = new RedisScript(`
local purpose, subject, sealed, mac = unpack(redis.call('HMGET', KEYS[1], 'purpose', 'subject', 'sealed', 'mac'))
if not purpose or subject ~= ARGV[3] then return {'unknown'} end
local isExpected = false
for index = 4, #ARGV do isExpected = isExpected or ARGV[index] == purpose end
if not isExpected then return {'unknown'} end

local attempts = redis.call('HINCRBY', KEYS[1], 'attempts', 1)
local isRight = mac == ARGV[1]
if isRight or attempts >= tonumber(ARGV[2]) then redis.call('DEL', KEYS[1]) end
if isRight then return {'right', sealed} end
return {'wrong'}
`);

/**
 * Stores codes that were mailed but not yet used. With six digits and five attempts, guessing succeeds for one
 * challenge in 200 000. Codes are stored as MACs, because a plain hash of six digits can be reversed by trying all of
 * them.
 */
export class EmailCodeStore {
  readonly #redis: RedisClient;
  readonly #masterKey: string;
  readonly #macKey: Buffer;

  constructor(redis: RedisClient, masterKey: string) {
    this.#redis = redis;
    this.#masterKey = masterKey;
    this.#macKey = deriveKey(masterKey, 'email codes');
  }

  async create({ purpose, email, subject }: CodeRequest): Promise<IssuedCode> {
    const challengeId = createUuid();
    const code = String(randomInt(10 ** codeLength)).padStart(codeLength, '0');
    const expiresAt = new Date(Date.now() + codeLifetimeSeconds * 1_000);
    const sealed = this.#seal({ challengeId, purpose, subject, email });
    const values = [purpose, subject, sealed, this.#mac(challengeId, code), codeLifetimeSeconds];
    await callRedis(() => createScript.run(this.#redis, [redisKeys.emailCode(challengeId)], values));
    return { challengeId, code, expiresAt };
  }

  /**
   * Compares a code. Uses up an attempt, and if the code is right, the code itself. Text that is not six digits is
   * treated as a wrong code.
   */
  async verify(challengeId: string, code: string, expected: ExpectedCode): Promise<CodeVerification> {
    if (!isUuid(challengeId)) return { outcome: 'unknown' };
    const id = challengeId.toLowerCase();
    const values = [this.#mac(id, code), maxCodeAttempts, expected.subject, ...expected.purposes];
    const reply = await callRedis(() => verifyScript.run(this.#redis, [redisKeys.emailCode(id)], values));
    const [outcome, sealed = ''] = reply as [CodeVerification['outcome'], string?];
    if (outcome !== 'right') return { outcome };
    const { challengeId: sealedFor, purpose, subject, email } = this.#open(sealed);
    const isExpected =
      sealedFor === id && subject === expected.subject && expected.purposes.includes(purpose);
    return isExpected ? { outcome, purpose, email } : { outcome: 'wrong' };
  }

  /** Invalidates a code whose mail could not be queued. */
  async discard(challengeId: string): Promise<void> {
    await callRedis(() => this.#redis.del(redisKeys.emailCode(challengeId)));
  }

  /**
   * Encrypts a challenge's purpose, subject and address, so that Redis reveals no address, and nobody with write access
   * to Redis can turn one challenge into another.
   */
  #seal(challenge: SealedChallenge): string {
    return encryptSecret(JSON.stringify(challenge), this.#masterKey);
  }

  #open(sealed: string): SealedChallenge {
    return JSON.parse(decryptSecret(sealed, this.#masterKey)) as SealedChallenge;
  }

  /** Includes the challenge id, so that equal codes have different MACs. */
  #mac(challengeId: string, code: string): string {
    return createHmac('sha256', this.#macKey).update(`${challengeId}:${code}`).digest('base64url');
  }
}
