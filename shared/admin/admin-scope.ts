import { randomBytes } from 'node:crypto';
import type { AdminScope } from '../contract/admin-terms.ts';

/** The name of the token in the environment variable of the same name. Its scope is `all`. */
export const adminTokenName = 'ADMIN_TOKEN';

/** The name of an actor that runs the `admin` command. */
export const commandName = 'command';

/** Begins with a letter or a digit. Not the names that stand for something else. */
const tokenName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

export const isTokenName = (name: string): boolean =>
  tokenName.test(name) && name !== adminTokenName && name !== commandName;

/** `mga-` and 43 URL-safe characters: 256 random bits. */
export const createTokenSecret = (): string => `mga-${randomBytes(32).toString('base64url')}`;

const tokenSecret = /^mga-[A-Za-z0-9_-]{43}$/;

export const isTokenSecret = (text: string): boolean => tokenSecret.test(text);

/** Who calls the admin API. */
export interface AdminCaller {
  /** The name of the token. */
  readonly name: string;
  readonly scope: AdminScope;
  /** The hash of the token. A session ends with it. */
  readonly secretHash: string;
  /** Null if the caller sent the token itself. */
  readonly session: { readonly csrfToken: string; readonly expiresAt: Date } | null;
}
