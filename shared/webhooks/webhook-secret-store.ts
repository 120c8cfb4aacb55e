import { randomBytes } from 'node:crypto';
import { decryptSecret, encryptSecret } from '../accounts/credentials.ts';
import type { Config } from '../runtime/config.ts';
import { callMongo, isDuplicateKey, type Collection, type Database } from '../storage/mongo-client.ts';

/** What an account's webhooks are signed with, under the master key. `_id` is the account's. */
interface WebhookSecretDocument {
  readonly _id: string;
  /** AES-256-GCM under MASTER_KEY. */
  readonly encrypted: string;
  /** The secret before the last rotation, which goes on signing for a while. */
  readonly previous: { readonly encrypted: string; readonly validUntil: Date } | null;
}

/** Long enough to bring the new secret to every receiver. */
const rotationOverlapMs = 24 * 60 * 60 * 1_000;

/** Only other rotations of the same account get in the way of one. */
const rotationAttempts = 20;

/** As Standard Webhooks writes a secret: standard base64 of 24 to 64 random bytes. */
function createWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/**
 * Secrets that sign webhooks, one an account. They are kept whatever REVEAL says: a signature is made with the secret
 * itself, so a hash of it would be of no use.
 */
export class WebhookSecretStore {
  readonly #secrets: Collection<WebhookSecretDocument>;
  readonly #masterKey: string;
  readonly #nowMs: () => number;

  /** @param nowMs for tests: a clock in milliseconds */
  constructor(
    db: Database,
    { masterKey }: Pick<Config, 'masterKey'>,
    nowMs: () => number = () => Date.now(),
  ) {
    this.#secrets = db.collection('webhook_secrets');
    this.#masterKey = masterKey;
    this.#nowMs = nowMs;
  }

  /** The account's secret, made on first use. @returns null where it was stored under another master key */
  async getOrCreate(accountId: string): Promise<string | null> {
    return this.#tryToDecrypt((await this.#findOrInsert(accountId)).encrypted);
  }

  /**
   * The secrets that sign a webhook now: the account's own, then the one it replaced within the last 24 hours.
   * @throws Error where the account's own was stored under another master key
   */
  async listSigning(accountId: string): Promise<readonly string[]> {
    const { encrypted, previous } = await this.#findOrInsert(accountId);
    const current = this.#tryToDecrypt(encrypted);
    if (current === null) {
      throw new Error(
        `The webhook secret of account ${accountId} is stored under another MASTER_KEY. Set the former one, or rotate the secret.`,
      );
    }
    const isOver = previous === null || previous.validUntil.getTime() <= this.#nowMs();
    const former = isOver ? null : this.#tryToDecrypt(previous.encrypted);
    return former === null ? [current] : [current, former];
  }

  /**
   * Replaces the secret. The former one also signs for 24 hours, unless another rotation replaces it before that: two
   * rotations at once end a secret that was stolen.
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
    throw new Error(`The webhook secret of account ${accountId} is being rotated by others; try again.`);
  }

  async #findOrInsert(accountId: string): Promise<WebhookSecretDocument> {
    const found = await this.#find(accountId);
    if (found !== null) return found;
    const made: WebhookSecretDocument = {
      _id: accountId,
      encrypted: encryptSecret(createWebhookSecret(), this.#masterKey),
      previous: null,
    };
    try {
      await callMongo(() => this.#secrets.insertOne(made));
      return made;
    } catch (error) {
      // Another process made one first, and may have shown it already.
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
      // It was encrypted under another master key; the callers say so.
      return null;
    }
  }
}
