import { randomUUID } from 'node:crypto';
import { request } from 'undici';
import type { Config } from '../../../shared/platform/config/config.ts';
import { createSmtpClient } from '../../../shared/platform/mail/smtp-client.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import type { Alert } from './alert.ts';

/** For a whole attempt. */
const webhookTimeoutMs = 10_000;
const mailTimeouts = { connectMs: 5_000, silenceMs: 10_000, totalMs: 20_000 };

/** A receiver of alerts. */
export interface AlertTarget {
  readonly name: 'webhook' | 'mail';
  /** Makes one attempt. @throws if the receiver has not accepted the alert */
  send(alert: Alert, signal: AbortSignal): Promise<void>;
}

/** Lists the receivers that the operator has set. */
export function createTargets(
  { alerts: { webhookUrl, email }, smtpUrl, mailFrom }: Pick<Config, 'alerts' | 'smtpUrl' | 'mailFrom'>,
  log: Pick<Logger, 'warn'>,
): AlertTarget[] {
  const targets: AlertTarget[] = [];
  if (webhookUrl !== null) targets.push(createWebhookTarget(webhookUrl));
  if (email === null) return targets;
  if (smtpUrl === null) log.warn('ALERT_EMAIL is set without SMTP_URL: no alerts are mailed');
  else targets.push(createMailTarget({ to: email, from: mailFrom, smtpUrl }));
  return targets;
}

/**
 * Posts to the operator's own URL. It may be internal, so its address is not checked. Redirects are not followed, and the
 * response is not read.
 */
export function createWebhookTarget(url: string, timeoutMs = webhookTimeoutMs): AlertTarget {
  const { username, password, href } = splitCredentials(url);
  const login = Buffer.from(`${username}:${password}`).toString('base64');
  return {
    name: 'webhook',
    async send({ body }, signal) {
      const timeout = AbortSignal.timeout(timeoutMs);
      const { statusCode, body: response } = await request(href, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': 'model-gateway',
          ...(username === '' && password === '' ? {} : { authorization: `Basic ${login}` }),
        },
        body: JSON.stringify(body),
        signal: AbortSignal.any([signal, timeout]),
        // Alerts are rare, so the connection is not kept.
        reset: true,
      }).catch((error: unknown) => {
        if (!timeout.aborted) throw error;
        throw new Error(`it did not respond within ${timeoutMs / 1_000} s`, { cause: error });
      });
      response.on('error', () => undefined).destroy();
      if (statusCode < 200 || statusCode > 299) throw new Error(`it responded with ${statusCode}`);
    },
  };
}

function splitCredentials(text: string): { username: string; password: string; href: string } {
  const url = new URL(text);
  const [username, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  url.username = '';
  url.password = '';
  return { username, password, href: url.href };
}

interface MailTargetOptions {
  readonly to: string;
  readonly from: Config['mailFrom'];
  readonly smtpUrl: string;
}

/** Mails are sent straight to the mail server, because the queue of mails needs Redis and a worker. */
function createMailTarget({ to, from, smtpUrl }: MailTargetOptions): AlertTarget {
  return {
    name: 'mail',
    async send({ subject, body }, signal) {
      signal.throwIfAborted();
      const client = createSmtpClient({ url: smtpUrl, maxConnections: 1, timeouts: mailTimeouts });
      const close = (): void => client.close();
      signal.addEventListener('abort', close, { once: true });
      try {
        const host = from.address.slice(from.address.lastIndexOf('@'));
        await client.send({
          from,
          to,
          messageId: `${randomUUID()}${host}`,
          subject: `[model-gateway] ${subject}`,
          text: `${body.text}\n`,
        });
      } finally {
        signal.removeEventListener('abort', close);
        client.close();
      }
    },
  };
}
