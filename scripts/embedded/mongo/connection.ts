import type { Socket } from 'node:net';
import type { Environment } from './execute.ts';
import { execute } from './execute.ts';
import type { Request } from './wire.ts';
import { MessageSplitter, encodeReply, parseMessage } from './wire.ts';

/** One client's socket. Its commands are run one after the other, as drivers expect. */
export class Connection {
  readonly #environment: Environment;
  readonly #socket: Socket;
  #answered = Promise.resolve();
  #isEnding = false;

  constructor(environment: Environment, socket: Socket) {
    this.#environment = environment;
    this.#socket = socket;
    const splitter = new MessageSplitter();
    environment.status.connect();
    socket.setNoDelay(true);
    socket.once('close', () => environment.status.disconnect());
    // A client that went away needs no answer; `close` follows.
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      try {
        for (const message of splitter.push(chunk)) this.#receive(parseMessage(message));
      } catch (error) {
        console.error(`The embedded MongoDB ends a connection that it does not understand: ${String(error)}`);
        socket.destroy();
      }
    });
  }

  /** Answers the commands that have come and ends the connection. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#answered;
    this.#socket.destroySoon();
  }

  #receive(request: Request): void {
    if (!this.#isEnding) this.#answered = this.#answer(this.#answered, request);
  }

  async #answer(previous: Promise<void>, request: Request): Promise<void> {
    await previous;
    const reply = await execute(this.#environment, request);
    if (request.wantsReply && !this.#socket.destroyed) this.#socket.write(encodeReply(request, reply));
  }
}
