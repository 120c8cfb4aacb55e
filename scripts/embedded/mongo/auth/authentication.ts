import { Binary } from 'bson';
import type { Doc } from '../bson/document.ts';
import { isObject } from '../bson/document.ts';
import { toNumber } from '../bson/numbers.ts';
import { MongoError } from '../errors.ts';
import type { ScramCredential } from './scram.ts';
import { ScramConversation, authenticationFailed } from './scram.ts';

const mechanism = 'SCRAM-SHA-256';
/** The database of the only user. */
const userDb = 'admin';
/** A connection has one conversation at a time. */
const conversationId = 1;

/** The authentication state of a connection. It has no user until the client has proved that it knows the password. */
export class Authentication {
  readonly #credential: ScramCredential;
  #scram: ScramConversation | null = null;
  #skipsEmptyExchange = false;
  #isVerified = false;
  #isDone = false;

  constructor(credential: ScramCredential) {
    this.#credential = credential;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /**
   * Handles `saslStart`.
   * @throws MongoError
   */
  start(command: Doc, db: unknown): Doc {
    if (command.mechanism !== mechanism) {
      throw new MongoError(
        'MechanismUnavailable',
        `Received authentication for mechanism ${String(command.mechanism)} which is not enabled`,
      );
    }
    if (db !== userDb) throw authenticationFailed();
    this.#scram = new ScramConversation(this.#credential, readPayload(command));
    this.#isVerified = false;
    this.#skipsEmptyExchange = isObject(command.options) && command.options.skipEmptyExchange === true;
    return this.#reply(this.#scram.serverFirst);
  }

  /**
   * Handles `saslContinue`.
   * @throws MongoError
   */
  continue(command: Doc): Doc {
    const scram = this.#scram;
    if (scram === null || toNumber(command.conversationId) !== conversationId)
      throw new MongoError('ProtocolError', 'No SASL session state found');
    const payload = readPayload(command);
    if (this.#isVerified) return this.#end('');
    this.#scram = null;
    const serverFinal = scram.finish(payload);
    if (this.#skipsEmptyExchange) return this.#end(serverFinal);
    // Old drivers expect one more, empty exchange.
    this.#scram = scram;
    this.#isVerified = true;
    return this.#reply(serverFinal);
  }

  /**
   * Returns the authentication fields of a `hello` reply: the user's mechanisms, and the reply to a speculative first
   * message.
   */
  buildHelloFields({ saslSupportedMechs, speculativeAuthenticate }: Doc): Doc {
    return {
      ...(saslSupportedMechs === `${userDb}.${this.#credential.username}`
        ? { saslSupportedMechs: [mechanism] }
        : {}),
      ...(isObject(speculativeAuthenticate) ? this.#speculate(speculativeAuthenticate) : {}),
    };
  }

  /** Omits a failed attempt from the reply. The client then fails with `saslStart`. */
  #speculate(command: Doc): Doc {
    try {
      return { speculativeAuthenticate: this.start(command, command.db) };
    } catch (error) {
      if (error instanceof MongoError) return {};
      throw error;
    }
  }

  #end(payload: string): Doc {
    this.#scram = null;
    this.#isDone = true;
    return { ...this.#reply(payload), done: true };
  }

  #reply(payload: string): Doc {
    return { conversationId, done: false, payload: new Binary(Buffer.from(payload)), ok: 1 };
  }
}

function readPayload({ payload }: Doc): string {
  if (!(payload instanceof Binary)) throw authenticationFailed();
  return Buffer.from(payload.value()).toString();
}
