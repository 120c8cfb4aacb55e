// decision 0056
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { parse, stringify } from 'uuid';
import { hashSecret } from '../accounts/credentials.ts';
import { deriveKey } from './derive-key.ts';

export type SessionTokenKind = 'access' | 'refresh';

/** One MAC key per kind of token, so that a token of one kind is never accepted as another. */
export type SessionKeys = Readonly<Record<SessionTokenKind | 'csrf', Buffer>>;

/** Tokens in plain text. They are sent to the browser and not stored. */
export interface SessionTokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly csrfToken: string;
}

/** Hashes, which are stored instead of the tokens. */
export interface SessionHashes {
  readonly accessHash: string;
  readonly refreshHash: string;
  readonly csrfHash: string;
}

/** A token that was issued under our keys. Only the session's document shows whether it is still current. */
export interface IssuedToken {
  readonly sessionId: string;
  readonly hash: string;
}

const idBytes = 16;
const randomPartBytes = 32;
const macBytes = 16;
const tokenBytes = idBytes + randomPartBytes + macBytes;
const tokenLength = Math.ceil((tokenBytes * 4) / 3);

export function deriveKeys(masterKey: string): SessionKeys {
  const derive = (kind: keyof SessionKeys): Buffer => deriveKey(masterKey, `web session ${kind} token`);
  return { access: derive('access'), refresh: derive('refresh'), csrf: derive('csrf') };
}

export function createSessionTokens(sessionId: string, keys: SessionKeys): SessionTokens {
  const accessToken = createToken(sessionId, keys.access);
  return {
    accessToken,
    refreshToken: createToken(sessionId, keys.refresh),
    csrfToken: deriveCsrfToken(hashSecret(accessToken), keys),
  };
}

/**
 * Derives the CSRF token of a session from the hash of its access token, so that a page can ask for it again without a
 * change in a store. A refresh changes it.
 */
export const deriveCsrfToken = (accessHash: string, { csrf }: SessionKeys): string =>
  createHmac('sha256', csrf).update(accessHash).digest('base64url');

export function hashTokens({ accessToken, refreshToken, csrfToken }: SessionTokens): SessionHashes {
  return {
    accessHash: hashSecret(accessToken),
    refreshHash: hashSecret(refreshToken),
    csrfHash: hashSecret(csrfToken),
  };
}

/** Creates a token: the session id, 32 random bytes and a MAC over both, as base64url. */
function createToken(sessionId: string, key: Buffer): string {
  const body = Buffer.concat([parse(sessionId), randomBytes(randomPartBytes)]);
  return Buffer.concat([body, computeMac(body, key)]).toString('base64url');
}

function computeMac(body: Buffer, key: Buffer): Buffer {
  return createHmac('sha256', key).update(body).digest().subarray(0, macBytes);
}

/**
 * Reads a token without querying a store.
 * @returns null if the token was not issued under these keys, or is of the other kind
 */
export function readToken(kind: SessionTokenKind, token: string, keys: SessionKeys): IssuedToken | null {
  if (token.length !== tokenLength) return null;
  const bytes = Buffer.from(token, 'base64url');
  // Node also decodes non-canonical encodings of the same bytes, which would have a different hash.
  if (bytes.length !== tokenBytes || bytes.toString('base64url') !== token) return null;
  const body = bytes.subarray(0, -macBytes);
  if (!timingSafeEqual(computeMac(body, keys[kind]), bytes.subarray(-macBytes))) return null;
  return { sessionId: stringify(bytes.subarray(0, idBytes)), hash: hashSecret(token) };
}
