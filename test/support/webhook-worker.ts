import { createRedis, waitUntilReady } from '../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { createTestWebhookClient, StateLog, startTestIntake } from './webhooks.ts';

/** A process that only delivers webhooks, to be killed by tests. */
const log = createLogger('worker', 'info');
const redisUrl = process.env['REDIS_URL']!;
const redis = createRedis(redisUrl, 'commands', log);
await waitUntilReady(redis);
await startTestIntake(redisUrl, redis, {
  client: createTestWebhookClient(Number(process.env['RECEIVER_PORT'])),
  reporter: new StateLog(),
  lockMs: Number(process.env['LOCK_MS']),
});
log.info('worker ready');
