import { setTimeout as delay } from 'node:timers/promises';
import type { BanWatch } from '../../shared/accounts/ban-watch.ts';
import type { ChatJob, QueueItem } from '../../shared/queue/job-kinds.ts';
import { lanes } from '../../shared/queue/fair-share.ts';
import { takeReady } from '../../shared/queue/ready-queue.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { ReplyWriter, type ReplyPublisher } from '../../shared/reply/reply-channel.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import { notSettled, type JobDependencies } from '../jobs/job-context.ts';
import { runChat } from '../jobs/run-chat.ts';
import type { ActiveRuns } from './active-runs.ts';

/** How long one wait for work lasts: also how long stopping may take to be noticed. */
const waitSeconds = 1;
const failurePauseMs = 500;
/** Below the 28 s that a process has to stop: the rest is for settling what was read on until then. */
const readOnWhileStoppingMs = 22_000;
/** Of the runs of a worker, the part that chats of accounts with many under way leave to others. */
const keptForQuick = 0.25;
/** Without a run left for those, a worker looks for others again after so long. */
const lookAgainMs = 50;
/** Taken at once at the most, so that one worker does not empty the list while another is idle. */
const maxTaken = 64;

export interface ReadyIntakeOptions {
  readonly dependencies: JobDependencies;
  readonly blocking: RedisClient;
  readonly publisher: ReplyPublisher;
  readonly runs: ActiveRuns;
  readonly bans: Pick<BanWatch, 'checkStarted'>;
  /** Chats that run at once in this process. */
  readonly concurrency: number;
}

/** Takes interactive chats off the ready queue, as many as there are free slots, and runs them. */
export function startReadyIntake(options: ReadyIntakeOptions): Running {
  const { dependencies, blocking, runs, concurrency } = options;
  const stopping = new AbortController();
  let active = 0;
  let slotFreed: (() => void) | null = null;

  const run = async (text: string): Promise<void> => {
    active += 1;
    try {
      await runItem(options, text);
    } catch (error) {
      dependencies.log.error({ err: error }, 'a chat could not be settled');
    } finally {
      active -= 1;
      slotFreed?.();
    }
  };

  const whenSlotFreed = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      slotFreed = resolve;
    });
    slotFreed = null;
  };

  const mostOfBulk = concurrency - Math.floor(concurrency * keptForQuick);

  /** @returns whether there was room for any chat that may come */
  const take = async (): Promise<boolean> => {
    const hasRoom = active < mostOfBulk;
    const count = Math.min(maxTaken, (hasRoom ? mostOfBulk : concurrency) - active);
    const items = hasRoom
      ? await takeReady(blocking, lanes, count, waitSeconds)
      : await takeReady(blocking, ['quick'], count, 0);
    for (const item of items) void run(item);
    return hasRoom || items.length > 0;
  };

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      if (active >= concurrency) {
        await whenSlotFreed();
        continue;
      }
      try {
        if (!(await take())) await Promise.race([whenSlotFreed(), delay(lookAgainMs)]);
      } catch (error) {
        dependencies.log.debug({ err: error }, 'waiting for Redis');
        await delay(failurePauseMs);
      }
    }
  })();

  return {
    async stop() {
      stopping.abort();
      // Without Redis the wait for work ends only when Redis is back, and nothing can be taken meanwhile.
      const cut = new Promise<void>((resolve) => {
        if (blocking.status === 'ready') blocking.once('close', resolve);
        else resolve();
      });
      await Promise.race([loop, cut]);
      const timer = setTimeout(() => runs.stopReadingOn(), readOnWhileStoppingMs);
      await runs.drained();
      clearTimeout(timer);
    },
  };
}

async function runItem(options: ReadyIntakeOptions, text: string): Promise<void> {
  const { dependencies, publisher, runs, bans } = options;
  const job = await readItem(dependencies, text);
  if (job === null) return;
  const { requestId, deadlineAtMs } = job.request;
  // Whoever waits for a request past its deadline has answered its caller and released its reservation.
  if (Date.now() > deadlineAtMs) return;
  const reply = new ReplyWriter(publisher, job.replyChannel, job.request, job.attempt);
  const run = runs.start(job.request, job.replyChannel, job.attempt);
  const log = dependencies.log.child({ requestId });
  reply.accepted(dependencies.workerId);
  bans.checkStarted(job.request);
  try {
    await runChat(dependencies, job, { ...run, reply, log });
  } catch (error) {
    // What cannot be settled must still be answered: its owner waits for as long as this worker lives.
    log.error({ err: error }, 'a chat could not be settled');
    reply.error(notSettled);
  } finally {
    run.end();
  }
}

async function readItem({ payloads, log }: JobDependencies, text: string): Promise<ChatJob | null> {
  const item = JSON.parse(text) as QueueItem<ChatJob>;
  if (!('stored' in item)) return item;
  const stored = await payloads.take(item.stored);
  // Gone means expired, long after its deadline.
  if (stored === null) log.warn({ requestId: item.stored }, 'the body of a chat is gone');
  return stored === null ? null : (JSON.parse(stored.toString('utf8')) as ChatJob);
}
