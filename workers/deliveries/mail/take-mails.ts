// decision 0055
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import type { Running } from '../../../shared/platform/runtime/lifecycle.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { createThrottledWarning } from '../../../shared/platform/runtime/throttled-warning.ts';
import type { Faults } from '../../reporting/faults.ts';
import type { Mail } from '../../../shared/account-area/mail.ts';
import { mailQueueName, type SealedMail } from '../../../shared/account-area/mail-queue.ts';
import { closeBullWorker } from '../../intake/close-bull-worker.ts';
import { createBullWorker } from '../../intake/create-bull-worker.ts';
import { addJitter, computeBackoffMs } from '../../outbound/backoff.ts';
import { MailDropped, sendMail, type MailDeps } from './send-mail.ts';
import { createSmtpClient, type SmtpTimeouts } from '../../../shared/platform/mail/smtp-client.ts';
import { liveness } from '../../../shared/platform/redis/liveness.ts';

/**
 * Maximum number of mails that a process sends concurrently, each over its own connection. Mail servers often allow ten
 * or twenty connections.
 */
const defaultConcurrency = 5;

/** How long running sends may take when the process stops. Another worker sends interrupted mails again. */
const stopGraceMs = 5_000;

const firstRetryMs = 5_000;
const maxRetryMs: Record<Mail['kind'], number> = {
  // A user is waiting for the code, which is valid for at most ten minutes.
  'sign-in-code': 60_000,
  'confirmation-code': 60_000,
  notice: 15 * 60_000,
};

export interface MailIntakeOptions extends Omit<MailDeps, 'client'> {
  readonly smtpUrl: string;
  readonly bullmq: RedisClient;
  readonly faults: Faults;
  readonly log: Logger;
  /** The following options are for tests, which cannot wait for minutes. */
  readonly concurrency?: number;
  readonly computeRetryMs?: typeof computeMailRetryMs;
  readonly lockMs?: number;
  readonly timeouts?: SmtpTimeouts;
}

/** Takes mails off their queue and delivers each to the mail server at least once. */
export function startMailIntake(options: MailIntakeOptions): Running {
  const { smtpUrl, bullmq, faults, log, timeouts } = options;
  const { concurrency = defaultConcurrency, lockMs = liveness.queueItem.deadMs } = options;
  const { computeRetryMs = computeMailRetryMs } = options;
  const client = createSmtpClient({
    url: smtpUrl,
    maxConnections: concurrency,
    ...(timeouts === undefined ? {} : { timeouts }),
  });
  const worker = createBullWorker<SealedMail>(mailQueueName, (job) => sendMail({ ...options, client }, job), {
    faults,
    log,
    redis: bullmq,
    concurrency,
    lockMs,
    backoffStrategy: (attempts, _type, _error, job) => computeRetryMs(attempts, job!.name as Mail['kind']),
  });
  // While the mail server is down, every mail fails again and again.
  const warnOfRetry = createThrottledWarning((message, facts: object) => log.warn(facts, message));
  worker.on('failed', (job, error) => {
    const facts = { mailId: job?.id, kind: job?.name, attempts: job?.attemptsMade, reason: error.message };
    if (error instanceof MailDropped) log.warn(facts, 'mail dropped');
    else warnOfRetry('sending a mail failed; retrying', facts);
  });
  return {
    async stop() {
      const grace = setTimeout(() => client.close(), stopGraceMs);
      await closeBullWorker(worker, bullmq);
      clearTimeout(grace);
      client.close();
    },
  };
}

/**
 * Returns how long to wait before the next attempt to send a mail, in milliseconds. The pause doubles each time, up to
 * a maximum.
 * @param attempts number of attempts so far
 * @param random from 0 to 1
 */
export function computeMailRetryMs(
  attempts: number,
  kind: Mail['kind'],
  random: () => number = Math.random,
): number {
  const limits = { firstMs: firstRetryMs, maxMs: maxRetryMs[kind] };
  return addJitter(computeBackoffMs(attempts, limits), random());
}
