import { EventEmitter, once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import type { ExecutionContext } from 'ava';
import type { Email } from 'postal-mime';
import { SMTPServer } from 'smtp-server';
import { findMailCode, parseMail } from '../../scripts/embedded/smtp/read-mail.ts';
import { findStablePort } from './stable-port.ts';

export interface ReceivedMail extends Email {
  /** The recipient in the envelope. */
  readonly recipient: string;
  readonly raw: string;
}

/** A step of the protocol that the server rejects, with its status. */
export interface Refusal {
  readonly step: 'MAIL FROM' | 'RCPT TO' | 'DATA';
  readonly status: number;
}

/** A real mail server for tests, which can be slow, reject mails, be stopped and be restarted. */
export class Mailbox {
  readonly port: number;
  readonly received: ReceivedMail[] = [];
  /** The number of RCPT TO commands so far, accepted or not. */
  attempts = 0;
  /** While this is set, each mail is rejected. */
  refusal: Refusal | null = null;
  readonly #seen = new Set<ReceivedMail>();
  readonly #events = new EventEmitter().setMaxListeners(0);
  #held: Promise<void> | null = null;
  #server: SMTPServer | null = null;

  private constructor(port: number) {
    this.port = port;
  }

  static async start(): Promise<Mailbox> {
    const mailbox = new Mailbox(await findStablePort());
    await mailbox.restart();
    return mailbox;
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.port}`;
  }

  /** The oldest mail to this address that no call has returned before; waits until there is one. */
  async waitForMail(
    to: string,
    matches: (mail: ReceivedMail) => boolean = () => true,
  ): Promise<ReceivedMail> {
    for (;;) {
      const mail = this.received.find((one) => one.recipient === to && !this.#seen.has(one) && matches(one));
      if (mail !== undefined) {
        this.#seen.add(mail);
        return mail;
      }
      await once(this.#events, 'mail');
    }
  }

  /** Resolves when this many RCPT TO commands have arrived since the start. */
  async waitForAttempts(count: number): Promise<void> {
    while (this.attempts < count) await once(this.#events, 'attempt');
  }

  /** From now on the server accepts mails without replying. @returns a function that makes it reply again */
  hold(): () => void {
    let release = (): void => undefined;
    this.#held = new Promise((resolve) => (release = resolve));
    return () => {
      this.#held = null;
      release();
    };
  }

  /** Closes all connections and stops listening. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    await new Promise<void>((resolve) => server.close(resolve));
  }

  async restart(): Promise<void> {
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      disableReverseLookup: true,
      closeTimeout: 1,
      logger: false,
      onMailFrom: ({ address }, _session, done) => done(this.#refuse('MAIL FROM', address)),
      onRcptTo: ({ address }, _session, done) => {
        this.attempts += 1;
        this.#events.emit('attempt');
        done(this.#refuse('RCPT TO', address));
      },
      onData: (stream, { envelope }, done) => {
        const { address } = envelope.rcptTo[0]!;
        this.#receive(stream, address).then(
          () => done(this.#refuse('DATA', address)),
          (error: unknown) => done(error as Error),
        );
      },
    });
    // Tests interrupt connections deliberately.
    server.on('error', () => undefined);
    this.#server = server;
    await once(server.listen(this.port, '127.0.0.1'), 'listening');
  }

  async #receive(stream: NodeJS.ReadableStream, recipient: string): Promise<void> {
    const bytes = await buffer(stream);
    if (this.refusal?.step === 'DATA') return;
    this.received.push({ ...(await parseMail(bytes)), recipient, raw: bytes.toString() });
    this.#events.emit('mail');
    await this.#held;
  }

  /** An error whose message repeats the address, as that of a real server does. */
  #refuse(step: Refusal['step'], address: string): Error | null {
    if (this.refusal?.step !== step) return null;
    return Object.assign(new Error(`<${address}> is refused by the test`), {
      responseCode: this.refusal.status,
    });
  }
}

/** A mailbox that is stopped when the test ends. */
export async function useMailbox(t: ExecutionContext): Promise<Mailbox> {
  const mailbox = await Mailbox.start();
  t.teardown(() => mailbox.stop());
  return mailbox;
}

/** The code on its own line in a mail's text. */
export function readCode(mail: ReceivedMail): string {
  const code = findMailCode(mail.text);
  if (code === null) throw new Error(`There is no code in the mail "${mail.subject}".`);
  return code;
}
