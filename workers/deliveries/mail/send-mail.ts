import { UnrecoverableError, type Job as BullJob } from 'bullmq';
import { decryptSecret } from '../../../shared/accounts/credentials.ts';
import { serviceNameOf, type MailSender } from '../../../shared/platform/config/mail-sender.ts';
import type { Mail } from '../../../shared/account-area/mail.ts';
import type { SealedMail } from '../../../shared/account-area/mail-queue.ts';
import { renderMail } from './render-mail.ts';
import { SendingFailed, type SmtpClient } from '../../../shared/platform/mail/smtp-client.ts';

export interface MailDeps {
  readonly client: SmtpClient;
  readonly masterKey: string;
  readonly from: MailSender;
  readonly supportEmail: string | null;
  readonly isSignUpOpen: boolean;
  /** Whether the address belongs to a user. */
  readonly isKnown: (email: string) => Promise<boolean>;
}

/** The mail will not be sent: it has expired, or the server has permanently rejected it. */
export class MailDropped extends UnrecoverableError {}

/**
 * Processes a BullMQ job: makes one attempt to send a mail. Its errors are stored in Redis, so they do not contain
 * the address.
 * @throws MailDropped if the mail will not be retried; any other error if it will
 */
export async function sendMail(dependencies: MailDeps, job: BullJob<SealedMail>): Promise<void> {
  const { client, masterKey, from, supportEmail, isSignUpOpen, isKnown } = dependencies;
  const now = Date.now();
  if (now >= job.data.expiresAt) throw new MailDropped('It could not be sent in time.');
  // This fails if MASTER_KEY differs from the one used to seal. A worker with the right key may make the next attempt.
  const mail = JSON.parse(decryptSecret(job.data.sealed, masterKey)) as Mail;
  const rendered = renderMail(mail, {
    service: serviceNameOf(from),
    supportEmail,
    isSignUpOpen,
    isKnown: mail.kind !== 'sign-in-code' || (await isKnown(mail.email)),
    now,
  });
  try {
    await client.send({ from, to: mail.email, messageId: nameMessage(job.id!, from), ...rendered });
  } catch (error) {
    if (!(error instanceof SendingFailed) || !error.isPermanent) throw error;
    throw new MailDropped(error.message);
  }
}

function nameMessage(jobId: string, { address }: MailSender): string {
  return `${jobId}${address.slice(address.lastIndexOf('@'))}`;
}
