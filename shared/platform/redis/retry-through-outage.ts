import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../contract/errors.ts';

const defaultPauseMs = 500;

export interface OutageLimits {
  /** Whether to retry after this failure. By default, retries if Redis was unavailable. */
  readonly isOutage?: (error: unknown) => boolean;
  /** Pause between two attempts. */
  readonly pauseMs?: number;
}

/** Retries for as long as a Redis outage lasts. @throws the first failure that is not an outage */
export async function retryThroughOutage<T>(
  attempt: () => Promise<T>,
  { isOutage = isUnavailable, pauseMs = defaultPauseMs }: OutageLimits = {},
): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isOutage(error)) throw error;
      await delay(pauseMs);
    }
  }
}

const isUnavailable = (error: unknown): boolean =>
  error instanceof AppError && error.code === 'service_unavailable';
