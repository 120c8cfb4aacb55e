import { readTypedCode, toLatinLookalikes } from '../encoding/typed-text.ts';
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  hash,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

/** `mg-` and 43 URL-safe characters: 256 random bits. */
export function createApiKey(): string {
  return `mg-${randomBytes(32).toString('base64url')}`;
}

const apiKeyPattern = /^mg-[A-Za-z0-9_-]{43}$/;

export function isApiKey(value: string): boolean {
  return apiKeyPattern.test(value);
}

/**
 * SHA-256 in base64url, used for lookups. A key has 256 random bits, so a slow hash would add no protection, and a
 * lookup by hash leaks no timing of the key itself.
 */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

/** Compares two hashes of secrets in constant time. */
export function isSameHash(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

export function maskApiKey(key: string): string {
  return `${key.slice(0, 7)}…${key.slice(-4)}`;
}

const deriveAesKey = (masterKey: string): Buffer => createHash('sha256').update(masterKey).digest();

/** AES-256-GCM under the master key: nonce, tag and ciphertext in one URL-safe string. */
export function encryptSecret(secret: string, masterKey: string): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', deriveAesKey(masterKey), nonce);
  const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
}

/** @throws Error if the text was not encrypted under this master key */
export function decryptSecret(encrypted: string, masterKey: string): string {
  const bytes = Buffer.from(encrypted, 'base64url');
  const decipher = createDecipheriv('aes-256-gcm', deriveAesKey(masterKey), bytes.subarray(0, 12));
  decipher.setAuthTag(bytes.subarray(12, 28));
  return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8');
}

/** Without 0, O, 1, I and L, because codes are read aloud and typed. */
const codeAlphabet = '23456789ABCDEFGHJKMNPQRSTUVWXYZ';
const codeGroups = 5;
const codeGroupLength = 4;

/** Creates a refill code such as `7KQM-…`: 20 characters from an alphabet of 31, 99 random bits. */
export function createRefillCode(): string {
  const groups: string[] = [];
  for (let group = 0; group < codeGroups; group++) {
    let text = '';
    while (text.length < codeGroupLength) {
      const byte = randomBytes(1)[0]!;
      // Use only bytes below 248, a multiple of the alphabet's length. The others would make its first characters more
      // likely.
      if (byte < 256 - (256 % codeAlphabet.length)) text += codeAlphabet[byte % codeAlphabet.length];
    }
    groups.push(text);
  }
  return groups.join('-');
}

/** Hashes a code for storage and lookup. How it was typed does not matter, in Latin or in Cyrillic letters. */
export function hashRefillCode(code: string): string {
  return hashSecret(stripRefillCode(code));
}

const wholeCode = new RegExp(`^[${codeAlphabet}]{${codeGroups * codeGroupLength}}$`);

/** Whether a typed text can be a code at all. */
export const canBeRefillCode = (text: string): boolean => wholeCode.test(stripRefillCode(text));

/** Formats a code as it was issued, however it was typed: upper case, in groups separated by dashes. */
export function formatRefillCode(code: string): string {
  return (stripRefillCode(code).match(new RegExp(`.{1,${codeGroupLength}}`, 'gs')) ?? []).join('-');
}

function stripRefillCode(code: string): string {
  return toLatinLookalikes(readTypedCode(code).toUpperCase());
}
