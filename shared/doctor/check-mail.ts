import { isLoopbackHost } from '../platform/runtime/address-class.ts';
import type { Config } from '../platform/config/config.ts';
import { createSmtpClient } from '../platform/mail/smtp-client.ts';
import { ok, warning, type Finding } from './finding.ts';

const check = 'mail';

/** Checks that the mail server accepts our login. No mail is sent. */
export async function checkMail({
  smtpUrl,
  mailFrom,
  signup,
}: Pick<Config, 'smtpUrl' | 'mailFrom' | 'signup'>): Promise<Finding[]> {
  if (smtpUrl === null)
    return [
      signup.isOpen
        ? warning(
            check,
            'SMTP_URL is not set: nobody can sign up or sign in, because mails with codes stay queued',
            'Set it for the workers, or SIGNUP=off.',
          )
        : ok(check, 'SMTP_URL is not set, and sign-up is off'),
    ];
  const client = createSmtpClient({ url: smtpUrl, maxConnections: 1 });
  try {
    await client.verify();
  } finally {
    client.close();
  }
  const { hostname } = new URL(smtpUrl);
  const domain = mailFrom.address.slice(mailFrom.address.lastIndexOf('@') + 1);
  return [
    isLoopbackHost(domain) && !isLoopbackHost(hostname)
      ? warning(
          check,
          `${hostname} accepts the login, but mails come from ${mailFrom.address}, which recipients reject`,
          'Set MAIL_FROM to an address of a domain that may send through this server.',
        )
      : ok(check, `${hostname} accepts the login; mails come from ${mailFrom.address}`),
  ];
}
