import { hkdfSync } from 'node:crypto';

/** A key for one purpose alone (HKDF-SHA256 of the master key), so that what is made for one proves nothing for another. */
export function deriveKey(masterKey: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, '', `model-gateway ${purpose}`, 32));
}
