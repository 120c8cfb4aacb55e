import { Redis, type RedisOptions } from 'ioredis';

/**
 * Options of the connection on which BullMQ waits for work, up to 10 s at a time. If a wait fails, BullMQ starts
 * another.
 */
export const waitingOptions = {
  socketTimeout: 14_000,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
} as const;

/** The client for a BullMQ worker on a single server. */
export class BullmqClient extends Redis {
  override duplicate(options?: Partial<RedisOptions>): Redis {
    return super.duplicate({ ...options, ...waitingOptions });
  }
}
