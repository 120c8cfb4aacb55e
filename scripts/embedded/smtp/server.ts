import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { relative } from 'node:path';
import { SMTPServer, type SMTPServerDataStream } from 'smtp-server';
import { hashSecret, isSameHash } from '../../../shared/accounts/credentials.ts';
import { toPrintable } from '../../../shared/platform/runtime/to-printable.ts';
import { embeddedUser } from '../credentials.ts';
import { UnauthenticatedSockets, type UnauthenticatedLimits } from '../unauthenticated-sockets.ts';
import { Outbox } from './outbox.ts';
import { findMailCode, parseMail } from './read-mail.ts';

export interface EmbeddedSmtpOptions extends UnauthenticatedLimits {
  /** Folder for the mails. Created if missing. */
  readonly dir: string;
  readonly password: string;
  /** 0, the default, selects a free port. */
  readonly port?: number;
  /** Called with one line per mail. Defaults to standard output. */
  readonly print?: (line: string) => void;
  /** For tests. */
  readonly maxMails?: number;
}

export interface EmbeddedSmtp {
  readonly endpoint: string;
  close(): Promise<void>;
}

/** Maximum per mail. Ours have a few kilobytes. */
const maxMailBytes = 1_000_000;
const idleSocketMs = 120_000;
const maxClients = 1_000;

/** Starts an SMTP server on loopback, for development. It writes mails to a folder and does not forward them. */
export async function startEmbeddedSmtp(options: EmbeddedSmtpOptions): Promise<EmbeddedSmtp> {
  const { dir, password, port = 0, print = (line) => console.log(line), maxMails } = options;
  if (password === '') throw new Error('The embedded SMTP server needs a password.');
  const passwordHash = hashSecret(password);
  const outbox = new Outbox(dir, maxMails);
  const unauthenticated = new UnauthenticatedSockets(options);
  const socketsByPort = new Map<number, Socket>();
  const server = new SMTPServer({
    banner: 'model-gateway',
    size: maxMailBytes,
    maxClients,
    socketTimeout: idleSocketMs,
    closeTimeout: 1_000,
    disableReverseLookup: true,
    // TLS is useless on loopback, and there is no certificate that clients would trust.
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    logger: false,
    onAuth({ username, password: given }, { remotePort }, done) {
      const isRight = username === embeddedUser && isSameHash(hashSecret(given ?? ''), passwordHash);
      if (!isRight) return done(new Error('The user name or the password is wrong.'));
      const socket = socketsByPort.get(remotePort);
      if (socket !== undefined) unauthenticated.release(socket);
      done(null, { user: embeddedUser });
    },
    onData(stream, { envelope }, done) {
      const to = envelope.rcptTo.map(({ address }) => address).join(', ');
      receive(stream, outbox, to, print).then(
        () => done(),
        (error: unknown) => done(error instanceof Error ? error : new Error(String(error))),
      );
    },
  });
  // Do not crash when a client disconnects in the middle of a mail.
  server.on('error', () => undefined);
  server.server.on('connection', (socket: Socket) => {
    const { remotePort } = socket;
    if (remotePort === undefined) return;
    socketsByPort.set(remotePort, socket);
    socket.once('close', () => socketsByPort.delete(remotePort));
    unauthenticated.add(socket);
  });
  const listening = server.listen(port, '127.0.0.1');
  await once(listening, 'listening');
  return {
    endpoint: `smtp://127.0.0.1:${(listening.address() as AddressInfo).port}`,
    async close() {
      unauthenticated.closeAll();
      await new Promise<void>((resolve) => server.close(resolve));
    },
  };
}

async function receive(
  stream: SMTPServerDataStream,
  outbox: Outbox,
  to: string,
  print: (line: string) => void,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    // Read and discard the remaining data, because the protocol cannot interrupt a mail.
    if (!stream.sizeExceeded) chunks.push(chunk);
  }
  if (stream.sizeExceeded) throw new Error(`A mail must not exceed ${maxMailBytes} bytes.`);
  const mail = Buffer.concat(chunks);
  const path = outbox.add(mail);
  const { subject = '', text } = await parseMail(mail);
  const code = findMailCode(text);
  const words = [`DEV mail to ${to}: ${subject}`, ...(code === null ? [] : [`code ${code}`])];
  print(toPrintable([...words, relative(process.cwd(), path)].join(' · ')));
}
