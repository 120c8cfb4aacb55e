import { hkdfSync } from 'node:crypto';

/**
 * Derives a single-purpose key from the master key (HKDF-SHA256), so that a MAC for one purpose is invalid for
 * others.
 */
export function deriveKey(masterKey: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, '', `model-gateway ${purpose}`, 32));
}
