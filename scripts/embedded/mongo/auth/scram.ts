import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { MongoError } from '../errors.ts';

/** The stored form of a password: enough to verify a client that knows it, but not enough to act as such a client. */
export type ScramCredential = {
  username: string;
  salt: Buffer;
  iterations: number;
  storedKey: Buffer;
  serverKey: Buffer;
};

/**
 * MongoDB's default. The key is derived once, at startup, on a pool thread. Clients cannot trigger another derivation.
 */
const iterations = 15_000;
const keyBytes = 32;
const nonceBytes = 24;

/** @param password visible ASCII, which SASLprep leaves unchanged */
export async function deriveCredential(username: string, password: string): Promise<ScramCredential> {
  if (!/^[\x21-\x7e]+$/.test(password))
    throw new Error('The password must consist of visible ASCII characters.');
  const salt = randomBytes(28);
  const salted = await promisify(pbkdf2)(password, salt, iterations, keyBytes, 'sha256');
  return {
    username,
    salt,
    iterations,
    storedKey: hash(hmac(salted, 'Client Key')),
    serverKey: hmac(salted, 'Server Key'),
  };
}

/** The server's side of one SCRAM-SHA-256 exchange (RFC 5802, RFC 7677), without channel binding. */
export class ScramConversation {
  /** The reply to the client's first message. */
  readonly serverFirst: string;
  readonly #credential: ScramCredential;
  readonly #clientFirstBare: string;
  readonly #channelBinding: string;
  readonly #nonce: string;

  /** @throws MongoError if the message is invalid or for another user */
  constructor(credential: ScramCredential, clientFirst: string) {
    // "n" means no channel binding, "y" means that the client believes we have none. The empty authorization identity
    // comes next.
    const match =
      /^(?<header>[ny],,)(?<bare>n=(?<name>[^,]*),r=(?<nonce>[\x21-\x2b\x2d-\x7e]+)(?:,.*)?)$/s.exec(
        clientFirst,
      );
    if (match?.groups === undefined) throw authenticationFailed();
    const { header, bare, name, nonce } = match.groups as Record<
      'header' | 'bare' | 'name' | 'nonce',
      string
    >;
    if (name.replaceAll('=2C', ',').replaceAll('=3D', '=') !== credential.username)
      throw authenticationFailed();
    this.#credential = credential;
    this.#clientFirstBare = bare;
    this.#channelBinding = Buffer.from(header).toString('base64');
    this.#nonce = `${nonce}${randomBytes(nonceBytes).toString('base64')}`;
    this.serverFirst = `r=${this.#nonce},s=${credential.salt.toString('base64')},i=${credential.iterations}`;
  }

  /**
   * @returns the server's last message, which authenticates the server to the client
   * @throws MongoError if the password is wrong
   */
  finish(clientFinal: string): string {
    const proofAt = clientFinal.lastIndexOf(',p=');
    const withoutProof = clientFinal.slice(0, proofAt);
    const proof = Buffer.from(clientFinal.slice(proofAt + 3), 'base64');
    const start = `c=${this.#channelBinding},r=${this.#nonce}`;
    const isOurs = withoutProof === start || withoutProof.startsWith(`${start},`);
    if (proofAt === -1 || !isOurs || proof.length !== keyBytes) throw authenticationFailed();

    const { storedKey, serverKey } = this.#credential;
    const message = `${this.#clientFirstBare},${this.serverFirst},${withoutProof}`;
    const signature = hmac(storedKey, message);
    const clientKey = proof.map((byte, i) => byte ^ signature[i]!);
    if (!timingSafeEqual(hash(clientKey), storedKey)) throw authenticationFailed();
    return `v=${hmac(serverKey, message).toString('base64')}`;
  }
}

/** The same error for every cause, as in MongoDB. */
export function authenticationFailed(): MongoError {
  return new MongoError('AuthenticationFailed', 'Authentication failed.');
}

const hash = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
