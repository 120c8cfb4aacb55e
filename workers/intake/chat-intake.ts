import { setTimeout as delay } from 'node:timers/promises';
import type { BanWatch } from '../../shared/account-changes/ban-watch.ts';
import { countBulkRuns, lanes } from '../../shared/queue/fair-share.ts';
import type { ChatItem, ChatJob, StoredChat } from '../../shared/queue/job-kinds.ts';
import { takeReady } from '../../shared/queue/ready-queue.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { ReplyWriter } from '../replies/reply-writer.ts';
import type { ReplyPublisher } from '../replies/reply-publisher.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { notSettled, type JobDeps, type RequestRun } from '../runs/job-context.ts';
import { runChat } from '../runs/run-chat.ts';
import type { ActiveRuns } from './active-runs.ts';
import { readStoredJob } from './read-stored-job.ts';

/** How long one wait for work lasts. Stopping may take as long to be noticed. */
const waitSeconds = 1;
const failurePauseMs = 500;
/** Below the 28 s that a process has to stop. The rest is for settling the streams that were read until then. */
const readOnWhileStoppingMs = 22_000;
/** How long a worker waits before looking again when only the slots for quick chats are free. */
const lookAgainMs = 50;
const part = 'taking chats';
/** Limit per take, so that one worker does not empty the list while another is idle. */
const maxTaken = 64;

export interface ReadyIntakeOptions {
  readonly dependencies: JobDeps;
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
      slotFreed = null;
    }
  };

  const whenSlotFreed = (): Promise<void> =>
    new Promise((resolve) => {
      slotFreed = resolve;
    });

  const mostOfBulk = countBulkRuns('chat', concurrency);

  /** @returns whether there was capacity for any chat that may come */
  const take = async (): Promise<boolean> => {
    const hasRoom = active < mostOfBulk;
    const count = Math.min(maxTaken, (hasRoom ? mostOfBulk : concurrency) - active);
    const items = hasRoom
      ? await takeReady(blocking, lanes, count, waitSeconds)
      : await takeReady(blocking, ['quick'], count, 0);
    for (const item of items) runInBackground(run(item), 'running a chat', dependencies.log);
    // Sent before a vendor's slot is requested. A single server handles both in that order, so a missing
    // listener is known before anything costs money.
    options.publisher.flush();
    return hasRoom || items.length > 0;
  };

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      if (active >= concurrency) {
        await whenSlotFreed();
        continue;
      }
      try {
        const hadRoom = await take();
        dependencies.faults.clear(part);
        if (!hadRoom) await Promise.race([whenSlotFreed(), delay(lookAgainMs)]);
      } catch (error) {
        dependencies.faults.note(part, error);
        await delay(failurePauseMs);
      }
    }
  })();

  return {
    async stop() {
      stopping.abort();
      const timer = setTimeout(() => runs.stopReadingOn(), readOnWhileStoppingMs);
      // Without Redis the blocking wait ends only when Redis is back, and nothing can be taken meanwhile.
      const cut = new Promise<void>((resolve) => {
        if (blocking.status === 'ready') blocking.once('close', resolve);
        else resolve();
      });
      await Promise.race([loop, cut]);
      await runs.drained();
      clearTimeout(timer);
    },
  };
}

async function runItem(options: ReadyIntakeOptions, text: string): Promise<void> {
  const { dependencies, publisher, runs, bans } = options;
  const item = JSON.parse(text) as ChatItem;
  const { replyChannel, attempt } = item;
  const request = 'stored' in item ? item.requests[0] : item.request;
  const { requestId, deadlineAtMs } = request;
  // The api process has already responded to the caller and released the reservation.
  if (Date.now() > deadlineAtMs) return;
  const reply = new ReplyWriter(publisher, replyChannel, request, attempt);
  const run = { ...runs.start(request, replyChannel, attempt), reply };
  const log = dependencies.log.child({ requestId });
  // Accept before reading a large body, which waits its turn, so that the request is not presumed lost
  // meanwhile.
  reply.accepted(dependencies.workerId);
  bans.checkStarted(request);
  if (dependencies.redis.isCluster) {
    // Lets requests that were taken together be accepted in one message.
    await Promise.resolve();
    await publisher.sent();
  }
  try {
    if ('stored' in item) await runStored(dependencies, item, { ...run, log });
    else await runChat(dependencies, item, { ...run, log });
  } catch (error) {
    // A request that cannot be settled still needs a reply: its caller waits for as long as this worker lives.
    log.error({ err: error }, 'a chat could not be settled');
    reply.error(notSettled);
  } finally {
    run.end();
  }
}

async function runStored(dependencies: JobDeps, item: StoredChat, run: RequestRun): Promise<void> {
  const read = await readStoredJob<ChatJob>(dependencies, item, [run]);
  // If this worker dies, the body is stored again.
  dependencies.payloads.drop(item.stored);
  if (read === null) return;
  try {
    await runChat(dependencies, read.job, run);
  } finally {
    read.memory.release();
  }
}
