import { createHmac, randomInt } from 'node:crypto';
import { v4 as createUuid, validate as isUuid } from 'uuid';
import { decryptSecret, encryptSecret } from '../../shared/accounts/credentials.ts';
import { codeLifetimeSeconds, maxCodeAttempts, type SignInPurpose } from '../contract/web-auth.ts';
import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { deriveKey } from '../../shared/account-area/derive-key.ts';
import type { ConfirmedAction } from '../../shared/account-area/mail.ts';

export type CodePurpose = SignInPurpose | ConfirmedAction;

const codeLength = 6;

export interface NewCode {
  readonly purpose: CodePurpose;
  /** A normalized address. */
  readonly email: string;
  /** What the code is bound to: the user, the link and, for actions on the key, the key's hash. Empty for sign-in. */
  readonly subject: string;
}

interface SealedChallenge extends NewCode {
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

export type CodeCheck =
  | (AcceptedCode & { readonly outcome: 'right' })
  /** The code differs from the mailed one. */
  | { readonly outcome: 'wrong' }
  /** The code was not compared: the challenge never existed, is used up, has expired or is for something else. */
  | { readonly outcome: 'unknown' };

const createScript = new LuaScript(new URL('./create-email-code.lua', import.meta.url), [
  'challenge',
  'purpose',
  'subject',
  'sealed',
  'mac',
  'lifetime',
]);
const verifyScript = new LuaScript(
  new URL('./verify-email-code.lua', import.meta.url),
  ['challenge', 'mac', 'maxAttempts', 'subject'],
  { itemNames: ['purpose'] },
);

type VerificationReply = [outcome: 'right', sealed: string] | [outcome: 'wrong' | 'unknown'];

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

  async create({ purpose, email, subject }: NewCode): Promise<IssuedCode> {
    const challengeId = createUuid();
    const code = String(randomInt(10 ** codeLength)).padStart(codeLength, '0');
    const expiresAt = new Date(Date.now() + codeLifetimeSeconds * 1_000);
    const sealed = this.#seal({ challengeId, purpose, subject, email });
    const challenge = redisKeys.emailCode(challengeId);
    const mac = this.#mac(challengeId, code);
    const values = { challenge, purpose, subject, sealed, mac, lifetime: codeLifetimeSeconds };
    await callRedis(() => createScript.run(this.#redis, values));
    return { challengeId, code, expiresAt };
  }

  /**
   * Compares a code. Uses up an attempt, and if the code is right, the code itself. Text that is not six digits is
   * treated as a wrong code.
   */
  async verify(challengeId: string, code: string, expected: ExpectedCode): Promise<CodeCheck> {
    if (!isUuid(challengeId)) return { outcome: 'unknown' };
    const id = challengeId.toLowerCase();
    const values = {
      challenge: redisKeys.emailCode(id),
      mac: this.#mac(id, code),
      maxAttempts: maxCodeAttempts,
      subject: expected.subject,
    };
    const purposes = expected.purposes.map((purpose) => ({ purpose }));
    const reply = await callRedis(() => verifyScript.run(this.#redis, values, purposes));
    const [outcome, sealed] = reply as VerificationReply;
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
