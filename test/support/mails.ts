import { createRedis, waitUntilReady } from '../../shared/platform/redis/redis-client.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { Faults } from '../../workers/reporting/faults.ts';
import type { ConfirmationCodeMail, NoticeMail, SignInCodeMail } from '../../shared/account-area/mail.ts';
import { startMailIntake, type MailIntakeOptions } from '../../workers/deliveries/mail/take-mails.ts';

export const testMasterKey = 'test-master-key-0123456789abcdef0123456789';

export function createSignInMail(more: Partial<SignInCodeMail> = {}): SignInCodeMail {
  return {
    kind: 'sign-in-code',
    email: 'ann@example.com',
    purpose: 'login',
    code: '493021',
    expiresAt: Date.now() + 600_000,
    language: 'en',
    ...more,
  };
}

export function createConfirmationMail(more: Partial<ConfirmationCodeMail> = {}): ConfirmationCodeMail {
  return {
    kind: 'confirmation-code',
    email: 'ann@example.com',
    action: 'reveal',
    accountLabel: 'Main',
    code: '493021',
    expiresAt: Date.now() + 600_000,
    language: 'en',
    ...more,
  };
}

export function createNotice(more: Partial<NoticeMail> = {}): NoticeMail {
  return {
    kind: 'notice',
    email: 'ann@example.com',
    event: 'key-revealed',
    accountLabel: 'Main',
    at: Date.now(),
    address: '203.0.113.7',
    device: 'Firefox on Linux',
    language: 'en',
    ...more,
  };
}

/** The mail intake of one worker, with a new connection to a test Redis. Failed mails are retried immediately. */
export async function startTestMailIntake(
  redisUrl: string,
  settings: Partial<MailIntakeOptions> & Pick<MailIntakeOptions, 'smtpUrl'>,
): Promise<Running> {
  const log = createLogger('test', 'silent');
  const bullmq = createRedis(redisUrl, 'bullmq', log);
  await waitUntilReady(bullmq);
  const intake = startMailIntake({
    masterKey: testMasterKey,
    from: { name: 'Test Gateway', address: 'no-reply@gateway.example' },
    supportEmail: 'support@gateway.example',
    isSignUpOpen: true,
    isKnown: () => Promise.resolve(true),
    bullmq,
    faults: new Faults(log),
    log,
    computeRetryMs: () => 10,
    ...settings,
  });
  return {
    async stop() {
      await intake.stop();
      bullmq.disconnect();
    },
  };
}
