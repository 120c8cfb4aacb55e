import { randomBytes } from 'node:crypto';
import { decryptSecret, encryptSecret } from '../accounts/credentials.ts';
import type { Config } from '../platform/config/config.ts';
import {
  callMongo,
  isDuplicateKey,
  type Collection,
  type Database,
} from '../platform/storage/mongo-client.ts';

/** The secret that signs an account's webhooks. `_id` is the account id. */
interface WebhookSecretDocument {
  readonly _id: string;
  /** AES-256-GCM under MASTER_KEY. */
  readonly encrypted: string;
  /** The secret before the last rotation. It keeps signing until `validUntil`. */
  readonly previous: { readonly encrypted: string; readonly validUntil: Date } | null;
}

/** Gives the account's owner time to update every receiver. */
const rotationOverlapMs = 24 * 60 * 60 * 1_000;

/** An attempt fails only if another rotation of the same account completes during it. */
const rotationAttempts = 20;

/** Creates a secret in the format of Standard Webhooks: standard base64 of 24 to 64 random bytes. */
function createWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/**
 * Secrets that sign webhooks, one per account. They are stored even with `REVEAL=off`, because signing needs the secret
 * itself and not just a hash.
 */
export class WebhookSecretStore {
  readonly #secrets: Collection<WebhookSecretDocument>;
  readonly #masterKey: string;
  readonly #nowMs: () => number;

  /** @param nowMs a clock in milliseconds, for tests */
  constructor(
    db: Database,
    { masterKey }: Pick<Config, 'masterKey'>,
    nowMs: () => number = () => Date.now(),
  ) {
    this.#secrets = db.collection('webhook_secrets');
    this.#masterKey = masterKey;
    this.#nowMs = nowMs;
  }

  /** Whether the account has a secret already. */
  async has(accountId: string): Promise<boolean> {
    return (await this.#find(accountId)) !== null;
  }

  /** Returns when a secret that was replaced ends to sign; null if none does. */
  async findEndOfPrevious(accountId: string): Promise<Date | null> {
    const end = (await this.#find(accountId))?.previous?.validUntil ?? null;
    return end === null || end.getTime() <= this.#nowMs() ? null : end;
  }

  /** Returns the account's secret, created on first use. Null if it was stored under another master key. */
  async getOrCreate(accountId: string): Promise<string | null> {
    return this.#tryToDecrypt((await this.#findOrInsert(accountId)).encrypted);
  }

  /**
   * Returns the secrets to sign a webhook with: the current one, then the previous one if it was replaced within the last
   * 24 hours.
   * @throws Error if the current one was stored under another master key
   */
  async listSigning(accountId: string): Promise<readonly string[]> {
    const { encrypted, previous } = await this.#findOrInsert(accountId);
    const current = this.#tryToDecrypt(encrypted);
    if (current === null) {
      throw new Error(
        `The webhook secret of account ${accountId} was stored with a different MASTER_KEY. Restore the previous MASTER_KEY, or rotate the secret.`,
      );
    }
    const isExpired = previous === null || previous.validUntil.getTime() <= this.#nowMs();
    const former = isExpired ? null : this.#tryToDecrypt(previous.encrypted);
    return former === null ? [current] : [current, former];
  }

  /**
   * Replaces the secret. The previous one keeps signing for 24 hours or until the next rotation, so two rotations in a
   * row make a stolen secret invalid immediately.
   */
  async rotate(accountId: string): Promise<string> {
    const secret = createWebhookSecret();
    const encrypted = encryptSecret(secret, this.#masterKey);
    for (let attempt = 1; attempt <= rotationAttempts; attempt++) {
      const before = await this.#findOrInsert(accountId);
      const validUntil = new Date(this.#nowMs() + rotationOverlapMs);
      const previous = { encrypted: before.encrypted, validUntil };
      const { matchedCount } = await callMongo(() =>
        this.#secrets.updateOne(
          { _id: accountId, encrypted: before.encrypted },
          { $set: { encrypted, previous } },
        ),
      );
      if (matchedCount === 1) return secret;
    }
    throw new Error(
      `The webhook secret of account ${accountId} could not be rotated because of concurrent rotations. Try again.`,
    );
  }

  async #findOrInsert(accountId: string): Promise<WebhookSecretDocument> {
    const found = await this.#find(accountId);
    if (found !== null) return found;
    const created: WebhookSecretDocument = {
      _id: accountId,
      encrypted: encryptSecret(createWebhookSecret(), this.#masterKey),
      previous: null,
    };
    try {
      await callMongo(() => this.#secrets.insertOne(created));
      return created;
    } catch (error) {
      // Another process created one first and may already have shown it.
      const other = isDuplicateKey(error) ? await this.#find(accountId) : null;
      if (other === null) throw error;
      return other;
    }
  }

  async #find(accountId: string): Promise<WebhookSecretDocument | null> {
    return await callMongo(() => this.#secrets.findOne({ _id: accountId }));
  }

  #tryToDecrypt(encrypted: string): string | null {
    try {
      return decryptSecret(encrypted, this.#masterKey);
    } catch {
      // It was encrypted under another master key. Callers report that.
      return null;
    }
  }
}
