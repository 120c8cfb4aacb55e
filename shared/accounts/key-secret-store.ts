// decision 0036
import type { Config } from '../platform/config/config.ts';
import { callMongo, type Collection, type Database } from '../platform/storage/mongo-client.ts';
import { decryptSecret, encryptSecret, hashSecret, isSameHash } from './credentials.ts';

/** An API key that can be shown again. `_id` is its hash, so a secret is never found under another key. */
interface KeySecretDocument {
  readonly _id: string;
  /** AES-256-GCM under MASTER_KEY. */
  readonly encrypted: string;
}

/**
 * API keys encrypted under the master key, stored so that a key can be shown to its owner. Nothing else reads them;
 * requests are checked by hash. With `REVEAL=off` nothing is stored here, and existing secrets are deleted.
 */
export class KeySecretStore {
  readonly #secrets: Collection<KeySecretDocument>;
  readonly #masterKey: string;
  readonly #isOn: boolean;

  constructor(db: Database, { masterKey, revealsKeys }: Pick<Config, 'masterKey' | 'revealsKeys'>) {
    this.#secrets = db.collection('key_secrets');
    this.#masterKey = masterKey;
    this.#isOn = revealsKeys;
  }

  /**
   * Deletes secrets that were stored under another REVEAL setting. Safe to repeat; run at every start.
   * @returns whether the stored secrets were encrypted under this master key, checked with one sample
   */
  async prepare(): Promise<boolean> {
    if (!this.#isOn) {
      await this.#secrets.deleteMany({});
      return true;
    }
    const sample = await this.#secrets.findOne({});
    return sample === null || this.#tryToDecrypt(sample.encrypted) !== null;
  }

  async save(apiKey: string): Promise<void> {
    if (!this.#isOn) return;
    const encrypted = encryptSecret(apiKey, this.#masterKey);
    await callMongo(() => this.#secrets.insertOne({ _id: hashSecret(apiKey), encrypted }));
  }

  async delete(keyHash: string): Promise<void> {
    if (!this.#isOn) return;
    await callMongo(() => this.#secrets.deleteOne({ _id: keyHash }));
  }

  /** @returns null if the key is not stored, or was stored under another master key */
  async reveal(keyHash: string): Promise<string | null> {
    if (!this.#isOn) return null;
    const found = await callMongo(() => this.#secrets.findOne({ _id: keyHash }));
    const apiKey = found === null ? null : this.#tryToDecrypt(found.encrypted);
    return apiKey !== null && isSameHash(hashSecret(apiKey), keyHash) ? apiKey : null;
  }

  #tryToDecrypt(encrypted: string): string | null {
    try {
      return decryptSecret(encrypted, this.#masterKey);
    } catch {
      // Encrypted under another master key. The key itself still works but cannot be shown.
      return null;
    }
  }
}
