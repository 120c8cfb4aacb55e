import type { Socket } from 'node:net';
import { Authentication } from './auth/authentication.ts';
import type { ScramCredential } from './auth/scram.ts';
import type { Environment } from './execute.ts';
import { execute } from './execute.ts';
import type { UnauthenticatedSockets } from '../unauthenticated-sockets.ts';
import type { Request } from './wire.ts';
import { MessageSplitter, encodeReply, maxMessageBytes, parseMessage } from './wire.ts';

/** Shared by all connections of a server. */
export type ConnectionSurroundings = Omit<Environment, 'authentication'> & {
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
  readonly #surroundings: ConnectionSurroundings;
  readonly #socket: Socket;
  readonly #authentication: Authentication;
  readonly #environment: Environment;
  readonly #splitter = new MessageSplitter();
  #answered = Promise.resolve();
  #isAnswering = false;
  #isEnding = false;

  constructor(surroundings: ConnectionSurroundings, socket: Socket) {
    this.#surroundings = surroundings;
    this.#socket = socket;
    this.#authentication = new Authentication(surroundings.credential);
    const { store, cursors, status } = surroundings;
    this.#environment = { store, cursors, status, authentication: this.#authentication };
    status.connect();
    surroundings.unauthenticated.add(socket);
    socket.setNoDelay(true);
    socket.once('close', () => status.disconnect());
    // A disconnected client needs no response. `close` follows.
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
    await this.#answered;
    this.#socket.destroySoon();
  }

  /** Ends the connection even if its client still waits for a response. */
  destroy(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    if (this.#isEnding) return;
    this.#splitter.add(chunk);
    // No driver sends more before it gets a response. Data from other clients stays in the socket for now.
    if (this.#isAnswering) this.#socket.pause();
    else this.#answered = this.#answerAll();
  }

  /**
   * Responds to everything received so far. Each message is parsed only when it is its turn, because it takes far
   * more memory then.
   */
  async #answerAll(): Promise<void> {
    const { warn, unauthenticated } = this.#surroundings;
    this.#isAnswering = true;
    try {
      for (let message = this.#next(); message !== null; message = this.#next()) {
        unauthenticated.hear(this.#socket);
        await this.#answer(parseMessage(message));
      }
    } catch (error) {
      warn(`The embedded MongoDB ends a connection that it does not understand: ${String(error)}`);
      this.#socket.destroy();
    }
    this.#isAnswering = false;
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  #next(): Buffer | null {
    return this.#splitter.next(this.#authentication.isDone ? maxBytes : maxUnauthenticatedMessageBytes);
  }

  async #answer(request: Request): Promise<void> {
    const reply = await execute(this.#environment, request);
    if (this.#authentication.isDone) this.#surroundings.unauthenticated.release(this.#socket);
    if (request.wantsReply && !this.#socket.destroyed && !this.#socket.write(encodeReply(request, reply)))
      await waitUntilTaken(this.#socket);
  }
}

/**
 * Resolves when the client has read what was written to it, or has disconnected. The next response is not created
 * before that.
 */
function waitUntilTaken(socket: Socket): Promise<void> {
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
