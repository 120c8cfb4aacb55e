// decision 0080
import type { ChatResponse } from '../../../shared/contract/chat-response.ts';
import { AppError, toAppError } from '../../../shared/contract/errors.ts';
import { jobPath } from '../../../shared/contract/jobs.ts';
import type { BudgetShare } from '../../../shared/fairness/fair-budget.ts';
import { nextWorkTurn } from '../../../shared/fairness/work-turns.ts';
import { hasEnded } from '../../../shared/work/jobs/job-record.ts';
import { describeJobFailure } from '../../requests/stored-responses/job-failure.ts';
import { trackShare } from '../../requests/replies/response-memory.ts';
import type { Receiver } from '../../requests/replies/pending-reply.ts';
import type { StreamedRequest } from '../../requests/replies/sse-stream.ts';
import { waitForEnd } from '../../jobs/wait-for-end.ts';
import type { JobView } from '../../jobs/job-text.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { readJobResponse } from '../../responses/send-job.ts';
import { writeChatEvents } from '../../responses/write-chat-events.ts';
import type { Services } from '../../services.ts';
import { noSuchJob } from './jobs.ts';

/** Responses of this size are parsed and written without memory beyond that of the response. */
const smallResponseBytes = 256 * 1024;
/** A larger response would block the event loop while its events are made, and they are written in one go. */
const maxStreamedBytes = 2 * 1024 * 1024;
/** Memory of a parsed response and of its events, per byte of the response. */
const memoryPerByte = 3;

/**
 * Streams the response of a durable chat: waits until the job has ended, and then passes on its whole response as the
 * events of a stream, or its error.
 */
export function streamChatJob(
  services: Services,
  context: ApiContext,
  first: JobView,
  receiver: Receiver,
): StreamedRequest {
  let position: number | null = null;
  const noteView = ({ estimate }: JobView): void => {
    position = estimate.position === null ? null : estimate.position + 1;
  };
  passOn(services, context, { first, receiver, onView: noteView }).catch((error: unknown) =>
    receiver.fail(toAppError(error)),
  );
  // There is nothing to pause or to cancel: the job goes on without its readers.
  return {
    position: () => position,
    pause: () => undefined,
    resume: () => undefined,
    cancel: () => undefined,
  };
}

interface FollowedChat {
  readonly first: JobView;
  readonly receiver: Receiver;
  readonly onView: (view: JobView) => void;
}

/** @throws AppError the error of the job, or why its response cannot be read */
async function passOn(
  services: Services,
  context: ApiContext,
  { first, receiver, onView }: FollowedChat,
): Promise<void> {
  const { jobPolls, durableJobs, responseMemory } = services;
  const { signal } = context.state;
  const { closing } = durableJobs;
  const view = await waitForEnd(jobPolls, first, { waitMs: Infinity, signal, closing, onView });
  if (view === null) throw noSuchJob();
  const { job } = view;
  if (!hasEnded(job)) throw stopping();
  if (job.error !== null) throw describeJobFailure(job);
  const { body, failure, release } = await readJobResponse(services, context, job);
  let memory: BudgetShare | null = null;
  try {
    if (failure !== null) throw failure;
    if (!Buffer.isBuffer(body)) throw new TypeError('the response of a chat is one buffer');
    if (body.length > maxStreamedBytes) throw tooLargeToStream(job.id, body.length);
    if (body.length > smallResponseBytes) {
      // Not waited for: requests that hold memory while they wait for more could block each other.
      memory = responseMemory.tryAcquire(job.accountId, body.length * memoryPerByte);
      if (memory === null) throw new AppError('service_unavailable');
      trackShare(context.res, responseMemory, memory);
    }
    await nextWorkTurn(job.accountId);
    const response = JSON.parse(body.toString('utf8')) as ChatResponse;
    const bytes = Buffer.from([...writeChatEvents(response)].join(''));
    receiver.end({ bytes, release: () => memory?.release() });
  } catch (error) {
    memory?.release();
    throw error;
  } finally {
    release();
  }
}

const tooLargeToStream = (id: string, byteLength: number): AppError =>
  new AppError('validation_failed', {
    message: `The response of this job has ${byteLength} bytes, which is too large for a stream. Get it with GET ${jobPath(id)}.`,
    messageRu: `Ответ этого задания занимает ${byteLength} байт: для потока это слишком много. Получите его через GET ${jobPath(id)}.`,
  });

const stopping = (): AppError =>
  new AppError('service_unavailable', {
    message: 'This server is being restarted, and the job goes on. Connect again to follow it.',
    messageRu:
      'Этот сервер перезапускается, а задание выполняется. Подключитесь снова, чтобы следить за ним.',
    expose: true,
  });
