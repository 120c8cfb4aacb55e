import { domainToASCII } from 'node:url';
import { createTransport } from 'nodemailer';
import { isMailAddress, type MailSender } from '../config/mail-sender.ts';
import { isLoopbackHost } from '../runtime/address-class.ts';

export interface SmtpTimeouts {
  readonly connectMs: number;
  /** Maximum time without any data from the server. */
  readonly silenceMs: number;
  /** For a whole mail, because a server that sends a byte from time to time never hits `silenceMs`. */
  readonly totalMs: number;
}

const defaultTimeouts: SmtpTimeouts = { connectMs: 10_000, silenceMs: 20_000, totalMs: 60_000 };

/** Many servers limit the mails per connection, and a new connection is cheap. */
const maxMailsPerConnection = 100;

export interface SmtpClientOptions {
  /** In the format of `SMTP_URL`. */
  readonly url: string;
  readonly maxConnections: number;
  readonly timeouts?: SmtpTimeouts;
}

export interface OutgoingMail {
  readonly from: MailSender;
  readonly to: string;
  /**
   * The same for every attempt, so that mail programs show a mail once even if it arrives twice. Without angle
   * brackets.
   */
  readonly messageId: string;
  readonly subject: string;
  readonly text: string;
  /** Mails without it are plain text. */
  readonly html?: string;
}

/** The mail was not sent. The error message does not quote the server, whose replies may contain the address. */
export class SendingFailed extends Error {
  override readonly name = 'SendingFailed';
  /** Whether the server permanently rejected this recipient or this mail. */
  readonly isPermanent: boolean;

  constructor(message: string, isPermanent: boolean, cause?: unknown) {
    super(message, { cause });
    this.isPermanent = isPermanent;
  }
}

export interface SmtpClient {
  /**
   * Resolves when the server has accepted the mail.
   * @throws SendingFailed
   */
  send(mail: OutgoingMail): Promise<void>;
  /**
   * Connects and logs in, without sending a mail.
   * @throws SendingFailed
   */
  verify(): Promise<void>;
  /** Closes all connections. Mails in progress fail. */
  close(): void;
}

/** Creates a client that keeps a few connections to the mail server open, each for one mail at a time. */
export function createSmtpClient({
  url,
  maxConnections,
  timeouts = defaultTimeouts,
}: SmtpClientOptions): SmtpClient {
  const transport = createTransport({
    pool: true,
    ...readServer(url),
    connectionTimeout: timeouts.connectMs,
    dnsTimeout: timeouts.connectMs,
    greetingTimeout: timeouts.silenceMs,
    socketTimeout: timeouts.silenceMs,
    maxConnections,
    maxMessages: maxMailsPerConnection,
    // Lets nodemailer try once more if the server has closed a pooled connection. Callers make all further
    // attempts.
    maxRequeues: 1,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async send({ from, to, messageId, subject, text, html }) {
      const [sender, recipient] = [toWireAddress(from.address), toWireAddress(to)];
      try {
        await transport.sendMail({
          envelope: { from: sender, to: [recipient] },
          from: { name: from.name, address: sender },
          to: { name: '', address: recipient },
          subject,
          text,
          ...(html === undefined ? {} : { html }),
          messageId: `<${messageId}>`,
          // RFC 3834: prevents out-of-office replies. Exchange only supports the second header.
          headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
          signal: AbortSignal.timeout(timeouts.totalMs),
        });
      } catch (error) {
        throw explainFailure(error);
      }
    },
    async verify() {
      try {
        await transport.verify();
      } catch (error) {
        throw explainFailure(error, 'connection');
      }
    },
    close() {
      transport.close({ force: true });
    },
  };
}

/** Parses `SMTP_URL` into nodemailer's options for connecting and authenticating. */
export function readServer(text: string) {
  const { protocol, hostname, port, username, password } = new URL(text);
  const isSecure = protocol === 'smtps:';
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return {
    host,
    port: port === '' ? (isSecure ? 465 : 587) : Number(port),
    secure: isSecure,
    // Without this, the password is sent in clear text if the server, or a man in the middle, does not offer STARTTLS.
    requireTLS: !isSecure && username !== '' && !isLoopbackHost(hostname),
    ...(username === ''
      ? {}
      : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
  };
}

/**
 * Returns an address, of the sender or the recipient, in the format that mail servers use, with the domain in Punycode.
 * @throws SendingFailed if it could be parsed as anything but a single address; the message always names the recipient
 */
function toWireAddress(address: string): string {
  if (!isMailAddress(address)) throw new SendingFailed('The recipient address is invalid.', true);
  const at = address.lastIndexOf('@');
  return `${address.slice(0, at)}@${domainToASCII(address.slice(at + 1))}`;
}

/** The properties that nodemailer adds to its errors. */
interface SmtpErrorDetails {
  readonly code?: string;
  readonly command?: string;
  readonly responseCode?: number;
  readonly permanent?: boolean;
}

function explainFailure(error: unknown, refused: 'mail' | 'connection' = 'mail'): SendingFailed {
  const { code, command, responseCode, permanent } = error as SmtpErrorDetails;
  // A rejected login or sender is a configuration problem that the operator can fix.
  const isMailRejected = command === 'RCPT TO' || command === 'DATA';
  const reason = [command, responseCode ?? code].filter((word) => word !== undefined).join(', ');
  return new SendingFailed(
    `The mail server did not accept the ${refused} (${reason || 'no reason given'}).`,
    isMailRejected && permanent === true,
    error,
  );
}
