import { Redis } from 'ioredis';

type SendCommand = Redis['sendCommand'];

/**
 * A client that sends the commands of one event loop turn in one write. Commands never wait for the replies to earlier
 * ones, as they do with the automatic pipelining of ioredis, which also creates several further promises per command.
 */
export class CorkingClient extends Redis {
  #isCorked = false;
  /** Called with the time of each round trip (s): from the first command of an event loop turn to its reply. */
  onRoundTrip: ((seconds: number) => void) | null = null;

  override sendCommand(...[command, stream]: Parameters<SendCommand>): ReturnType<SendCommand> {
    const isFirst = !this.#isCorked && this.status === 'ready';
    if (isFirst) this.#cork();
    const sent = super.sendCommand(command, stream);
    if (isFirst && this.onRoundTrip !== null) this.#measure(command.promise, this.onRoundTrip);
    return sent;
  }

  #measure(reply: Promise<unknown>, onRoundTrip: (seconds: number) => void): void {
    const startedAtMs = performance.now();
    // A command that failed says nothing about the connection.
    reply.then(
      () => onRoundTrip((performance.now() - startedAtMs) / 1_000),
      () => undefined,
    );
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
