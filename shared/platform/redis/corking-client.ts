import { Redis } from 'ioredis';

type SendCommand = Redis['sendCommand'];

/**
 * A client that sends the commands of one event loop turn in one write. Commands never wait for the replies to earlier
 * ones, as they do with the automatic pipelining of ioredis, which also creates several further promises per command.
 */
export class CorkingClient extends Redis {
  #isCorked = false;

  override sendCommand(...[command, stream]: Parameters<SendCommand>): ReturnType<SendCommand> {
    if (!this.#isCorked && this.status === 'ready') this.#cork();
    return super.sendCommand(command, stream);
  }

  #cork(): void {
    const { stream } = this;
    this.#isCorked = true;
    stream.cork();
    setImmediate(() => {
      this.#isCorked = false;
      stream.uncork();
    });
  }
}
