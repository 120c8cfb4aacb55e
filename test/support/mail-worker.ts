import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { startTestMailIntake } from './mails.ts';

/** A process that only sends mails, to be killed by tests. */
await startTestMailIntake(process.env['REDIS_URL']!, {
  smtpUrl: process.env['SMTP_URL']!,
  lockMs: Number(process.env['LOCK_MS']),
});
createLogger('worker', 'info').info('worker ready');
