import { operations } from '../../contract/operations.ts';
import { defineEndpoint, type ContextOf } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { within } from '../../../shared/platform/runtime/within.ts';
import type { Services } from '../../services.ts';
import { RecentReading } from '../../operator/recent-reading.ts';

/** A check that takes longer has failed. */
const checkTimeoutMs = 2_000;

export const getLiveness = defineEndpoint(operations.getLiveness, [beginInTurns], () => async (context) => {
  sendProbe(context, true);
  await Promise.resolve();
});

export const getReadiness = defineEndpoint(operations.getReadiness, [beginInTurns], (services) => {
  const canReach = new RecentReading('reaching Redis', () => canReachRedis(services));
  return async (context: ContextOf<typeof operations.getReadiness>) => {
    sendProbe(context, !services.isStopping && (await canReach.get()));
  };
});

function sendProbe(context: ApiContext, isOk: boolean): void {
  context.set('cache-control', 'no-store');
  context.status = isOk ? 200 : 503;
  context.body = { status: isOk ? 'ok' : 'unavailable' };
}

async function canReachRedis({ redis }: Pick<Services, 'redis'>): Promise<boolean> {
  try {
    return await within(
      checkTimeoutMs,
      redis.ping().then(() => true),
      () => false,
    );
  } catch {
    // The client logs the outage.
    return false;
  }
}
