import { setTimeout as delay } from 'node:timers/promises';
import type { BanWatch } from '../../shared/money/ban-watch.ts';
import { countBulkRuns, lanes } from '../../shared/work/queue/fair-share.ts';
import type { ChatItem, ChatJob, StoredChat } from '../../shared/work/queue/job-kinds.ts';
import { takeReady } from '../../shared/work/queue/ready-queue.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { ReplyWriter } from '../replies/reply-writer.ts';
import type { ReplyPublisher } from '../replies/reply-publisher.ts';
import { createLazyChild } from '../reporting/lazy-child-logger.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import { notSettled, type JobDeps, type RequestRun } from '../runs/job-context.ts';
import { runChat } from '../runs/run-chat.ts';
import { RunFacts } from '../runs/run-facts.ts';
import { startRunSpan } from '../runs/run-span.ts';
import type { ActiveRuns } from './active-runs.ts';
import { BlockingWait } from './blocking-wait.ts';
import { readStoredJob } from './read-stored-job.ts';

/** Maximum duration of one blocking wait for work. On a Cluster, a stop is noticed only when the wait ends. */
const waitSeconds = 1;
const failurePauseMs = 500;
/** A process has 28 s to stop. The remaining time is for settling the streams that are still running by then. */
const streamDrainMs = 22_000;
/** How often a worker checks for work while only the slots for quick chats are free. */
const quickPollMs = 50;
const part = 'taking chats';
/** Maximum number of chats per take, so that one worker does not empty the list while another is idle. */
const maxPerTake = 64;

export interface ChatIntakeOptions {
  readonly dependencies: JobDeps;
  readonly blocking: RedisClient;
  readonly publisher: ReplyPublisher;
  readonly runs: ActiveRuns;
  readonly bans: Pick<BanWatch, 'checkStarted'>;
  /** Observes the attempts to take chats. */
  readonly observe: <R>(take: () => Promise<R>) => Promise<R>;
  /** Concurrent chats in this process. */
  readonly concurrency: number;
}

/** Takes interactive chats off the ready queue, up to the number of free slots, and runs them. */
export function startChatIntake(options: ChatIntakeOptions): Running {
  const { dependencies, blocking, runs, observe, concurrency } = options;
  const stopping = new AbortController();
  const wait = new BlockingWait(blocking, dependencies.redis, dependencies.log);
  let active = 0;
  let slotFreed: (() => void) | null = null;

  const run = async (text: string): Promise<void> => {
    active += 1;
    try {
      await runItem(options, text);
    } catch (error) {
      dependencies.log.error({ err: error }, 'settling a chat failed');
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

  const maxBulkRuns = countBulkRuns('chat', concurrency);

  /** @returns false if there is only capacity for quick chats and none was waiting */
  const take = async (): Promise<boolean> => {
    const hasBulkCapacity = active < maxBulkRuns;
    const count = Math.min(maxPerTake, (hasBulkCapacity ? maxBulkRuns : concurrency) - active);
    await wait.prepare();
    const items = await observe(() =>
      hasBulkCapacity
        ? takeReady(blocking, lanes, count, waitSeconds)
        : takeReady(blocking, ['quick'], count, 0),
    );
    for (const item of items) runInBackground(run(item), 'running a chat', dependencies.log);
    // Send the queued replies before a vendor's slot is requested. A single Redis server handles both in that order, so
    // a missing listener is detected before anything costs money.
    options.publisher.flush();
    return hasBulkCapacity || items.length > 0;
  };

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      if (active >= concurrency) {
        await whenSlotFreed();
        continue;
      }
      try {
        const canTakeMore = await take();
        dependencies.faults.clear(part);
        if (!canTakeMore) await Promise.race([whenSlotFreed(), delay(quickPollMs)]);
      } catch (error) {
        dependencies.faults.note(part, error);
        await delay(failurePauseMs);
      }
    }
  })();

  return {
    async stop() {
      stopping.abort();
      const timer = setTimeout(() => runs.endAbandonedStreams(), streamDrainMs);
      // If Redis is down, the blocking wait ends only when it is back. Nothing can be taken before that.
      const disconnected = new Promise<void>((resolve) => {
        if (blocking.status === 'ready') blocking.once('close', resolve);
        else resolve();
      });
      const ended = Promise.race([loop, disconnected]);
      await wait.end(ended);
      await runs.drained();
      clearTimeout(timer);
    },
  };
}

async function runItem(options: ChatIntakeOptions, text: string): Promise<void> {
  const { dependencies, publisher, runs, bans } = options;
  const item = JSON.parse(text) as ChatItem;
  const { replyChannel, attempt } = item;
  const request = 'stored' in item ? item.requests[0] : item.request;
  const { requestId, deadlineAtMs } = request;
  // The api process has already responded to the caller and released the reservation.
  if (Date.now() > deadlineAtMs) return;
  const reply = new ReplyWriter(publisher, replyChannel, request, attempt);
  const span = startRunSpan(dependencies.tracing, 'chat', request);
  const facts = new RunFacts(request, span);
  const run = { ...runs.start(request, replyChannel, attempt), reply, facts };
  const log = createLazyChild(dependencies.log, { requestId });
  // Accept the request before reading a large body, which may have to wait for memory. Otherwise the request would
  // be presumed lost.
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
    // A request that cannot be settled still needs a reply: its caller would wait until this worker exits.
    log.error({ err: error }, 'settling a chat failed');
    reply.error(notSettled);
  } finally {
    span?.end();
    run.end();
  }
}

async function runStored(dependencies: JobDeps, item: StoredChat, run: RequestRun): Promise<void> {
  const readJob = await readStoredJob<ChatJob>(dependencies, item, [run]);
  // The stored body is no longer needed: if this worker dies, the api process stores it again for the next attempt.
  dependencies.payloads.drop(item.stored);
  if (readJob === null) return;
  try {
    await runChat(dependencies, readJob.job, run);
  } finally {
    readJob.memory.release();
  }
}
