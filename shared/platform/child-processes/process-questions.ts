import { within } from '../runtime/within.ts';

/** One end of the channel between two processes: `process` itself, or a child. */
export interface ProcessChannel {
  send?(message: object, callback: (error: Error | null) => void): boolean;
  on(event: 'message', listener: (message: unknown) => void): unknown;
  on(event: 'disconnect', listener: () => void): unknown;
}

interface Question {
  readonly gatewayQuestion: string;
}

interface Answer {
  readonly gatewayAnswer: string;
  /** Missing if the question could not be answered. */
  readonly value?: unknown;
}

const hasField = <K extends string>(message: unknown, name: K): message is Record<K, string> =>
  typeof message === 'object' &&
  message !== null &&
  typeof (message as Record<K, unknown>)[name] === 'string';

/**
 * Asks the process at the other end of a channel. A question that is not answered yet is not sent again, so a process
 * that hangs costs no memory.
 */
export class ProcessQuestions {
  readonly #channel: ProcessChannel;
  readonly #unanswered = new Map<string, { answer: Promise<unknown>; resolve(value: unknown): void }>();

  constructor(channel: ProcessChannel) {
    this.#channel = channel;
    channel.on('message', (message) => {
      if (hasField(message, 'gatewayAnswer')) {
        const { gatewayAnswer: name, value = null } = message as Answer;
        this.#resolve(name, value);
      }
    });
    channel.on('disconnect', () => {
      for (const name of this.#unanswered.keys()) this.#resolve(name, null);
    });
  }

  /** @returns null if there is no answer within this time */
  async ask(name: string, timeoutMs: number): Promise<unknown> {
    const answer = this.#unanswered.get(name)?.answer ?? this.#send(name);
    return await within(timeoutMs, answer, () => null);
  }

  #send(name: string): Promise<unknown> {
    let resolve = (_value: unknown): void => undefined;
    const answer = new Promise<unknown>((resolveAnswer) => (resolve = resolveAnswer));
    this.#unanswered.set(name, { answer, resolve });
    const onSent = (error: Error | null): void => {
      // The other process has exited.
      if (error !== null) this.#resolve(name, null);
    };
    if (this.#channel.send === undefined) onSent(new Error('no channel'));
    else this.#channel.send({ gatewayQuestion: name } satisfies Question, onSent);
    return answer;
  }

  #resolve(name: string, value: unknown): void {
    this.#unanswered.get(name)?.resolve(value);
    this.#unanswered.delete(name);
  }
}

/** Answers the questions of the process at the other end of a channel. Others are ignored. */
export function answerQuestions(
  channel: ProcessChannel,
  answers: Readonly<Record<string, () => unknown>>,
): void {
  channel.on('message', (message) => {
    if (!hasField(message, 'gatewayQuestion')) return;
    const { gatewayQuestion: name } = message as Question;
    if (!Object.hasOwn(answers, name)) return;
    const reply = (value?: unknown): void => {
      // The other process has exited if this fails, and needs no answer.
      channel.send?.({ gatewayAnswer: name, value } satisfies Answer, () => undefined);
    };
    Promise.resolve()
      .then(() => answers[name]!())
      .then(reply, () => reply());
  });
}
