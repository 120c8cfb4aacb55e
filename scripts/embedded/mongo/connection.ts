import type { Socket } from 'node:net';
import { Authentication } from './auth/authentication.ts';
import type { ScramCredential } from './auth/scram.ts';
import type { Environment } from './execute.ts';
import { execute } from './execute.ts';
import type { UnauthenticatedSockets } from '../unauthenticated-sockets.ts';
import type { Request } from './wire.ts';
import { MessageSplitter, encodeReply, maxMessageBytes, parseMessage } from './wire.ts';

/** Shared by all connections of a server. */
export type ConnectionEnvironment = Omit<Environment, 'authentication'> & {
  credential: ScramCredential;
  unauthenticated: UnauthenticatedSockets;
  /** Called with one line for problems that cannot be reported to a client. */
  warn: (line: string) => void;
};

/** Authentication commands are far smaller. */
const maxUnauthenticatedMessageBytes = 16_384;
/** The largest command plus the overhead of a message. */
const maxBytes = maxMessageBytes + 16_384;

/** One client's socket. Its commands run one after another, as drivers expect. */
export class Connection {
  readonly #server: ConnectionEnvironment;
  readonly #socket: Socket;
  readonly #authentication: Authentication;
  readonly #environment: Environment;
  readonly #splitter = new MessageSplitter();
  #responding = Promise.resolve();
  #isResponding = false;
  #isEnding = false;

  constructor(server: ConnectionEnvironment, socket: Socket) {
    this.#server = server;
    this.#socket = socket;
    this.#authentication = new Authentication(server.credential);
    const { store, cursors, status } = server;
    this.#environment = { store, cursors, status, authentication: this.#authentication };
    status.connect();
    server.unauthenticated.add(socket);
    socket.setNoDelay(true);
    socket.once('close', () => status.disconnect());
    // A disconnected client needs no response. A `close` event follows.
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => this.#read(chunk));
  }

  /**
   * Responds to the commands received so far, then ends the connection. Ends an unauthenticated connection
   * immediately.
   */
  async end(): Promise<void> {
    this.#isEnding = true;
    if (!this.#authentication.isDone) this.#socket.destroy();
    await this.#responding;
    this.#socket.destroySoon();
  }

  /** Closes the connection even if its client still waits for a response. */
  destroy(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    if (this.#isEnding) return;
    this.#splitter.add(chunk);
    // Drivers do not send more before they get a response. If another client does, its data waits in the socket.
    if (this.#isResponding) this.#socket.pause();
    else this.#responding = this.#respondToAll();
  }

  /**
   * Responds to everything received so far. Parses each message only when the previous ones are done, because parsed
   * messages take far more memory.
   */
  async #respondToAll(): Promise<void> {
    const { warn, unauthenticated } = this.#server;
    this.#isResponding = true;
    try {
      for (let message = this.#next(); message !== null; message = this.#next()) {
        unauthenticated.recordActivity(this.#socket);
        await this.#respond(parseMessage(message));
      }
    } catch (error) {
      warn(`The embedded MongoDB closed a connection with an invalid message: ${String(error)}`);
      this.#socket.destroy();
    }
    this.#isResponding = false;
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  #next(): Buffer | null {
    return this.#splitter.next(this.#authentication.isDone ? maxBytes : maxUnauthenticatedMessageBytes);
  }

  async #respond(request: Request): Promise<void> {
    const reply = await execute(this.#environment, request);
    if (this.#authentication.isDone) this.#server.unauthenticated.release(this.#socket);
    if (request.wantsReply && !this.#socket.destroyed && !this.#socket.write(encodeReply(request, reply)))
      await waitUntilRead(this.#socket);
  }
}

/**
 * Resolves when the client has read what was written to it or has disconnected. The next response is not created before
 * that.
 */
function waitUntilRead(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      socket.off('drain', finish);
      socket.off('close', finish);
      resolve();
    };
    socket.on('drain', finish);
    socket.on('close', finish);
  });
}
