// decision 0064
import { AppError } from '../../../shared/contract/errors.ts';
import { readStreamEventId } from '../../../shared/contract/event-id.ts';
import { resumableMinutes } from '../../../shared/contract/on-disconnect.ts';
import { operations } from '../../contract/operations.ts';
import { takeRateSlot } from '../../admission/pre-admit.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitStreams } from '../../http/middleware/limit-account-calls.ts';
import { SseStream } from '../../requests/replies/sse-stream.ts';
import { holderOf } from '../../http/request/holder.ts';
import { readerOf, readFromRedis } from '../../http/request/read-turns.ts';
import type { JobView } from '../../jobs/job-text.ts';
import { EventSkipper } from '../../requests/stored-responses/event-skipper.ts';
import { ResumedStream } from '../../requests/stored-responses/resumed-stream.ts';
import { streamResponse } from '../../responses/stream-response.ts';
import type { Services } from '../../services.ts';
import { readJobId, type JobContext } from './jobs.ts';
import { streamChatJob } from './stream-chat-job.ts';

/**
 * Continues a streamed chat that goes on without its reader: first what the reader has missed, then the rest as it
 * arrives. Streams the response of a durable chat once it is there. Any number of readers may follow a stream, at any api
 * process.
 */
export const streamJobOutput = defineEndpoint(
  operations.streamJobOutput,
  [authenticateAccount, limitStreams],
  (services) => async (context) => {
    const request = { requestId: readJobId(context), accountId: holderOf(context).accountId };
    const { storedResponses } = services;
    // Like a repeated request with an Idempotency-Key, this costs bandwidth and nothing else.
    await takeRateSlot(services, context);
    const job = (await storedResponses.canResume(request)) ? null : await findChatJob(services, context);
    if (context.method === 'HEAD') {
      context.status = 200;
      context.type = 'text/event-stream';
      return;
    }
    const lastId = context.get('last-event-id') || context.state.query.last_event_id || '';
    const skipper = new EventSkipper(readStreamEventId(lastId, request.requestId));
    const stream = new SseStream(context.res, context.state.signal, {
      firstCommentMs: services.firstCommentMs,
      // A comment would send the status before it is known whether anything follows.
      mayComment: () => !skipper.isSearching,
    });
    const receiver = new ResumedStream(stream, skipper);
    await streamResponse(context, stream, async () =>
      job === null
        ? storedResponses.attachStream(request, receiver)
        : streamChatJob(services, context, job, receiver),
    );
    if (!receiver.isComplete || context.res.headersSent) return;
    // An EventSource that gets a 204 does not reconnect.
    context.respond = true;
    context.status = 204;
  },
);

/** @throws AppError `not_found` if there is no such job, or it is no chat */
async function findChatJob(services: Services, context: JobContext): Promise<JobView> {
  const { accountId } = holderOf(context);
  const find = () => services.durableJobs.find(accountId, readJobId(context));
  const view = await readFromRedis(services, readerOf(context), 'one', find);
  if (view?.job.operation !== 'chat.completions') throw noSuchStream();
  return view;
}

const noSuchStream = (): AppError =>
  new AppError('not_found', {
    message:
      'This account has no stream with this ID. A chat streamed with "X-On-Disconnect: continue" is stored for ' +
      `${resumableMinutes} minutes after it ends; its ID is the x-request-id of the response. Of jobs, only those of chats ` +
      'have a stream, until 24 hours after they end.',
    messageRu:
      'В этом аккаунте нет потока с таким идентификатором. Поток чата с заголовком «X-On-Disconnect: continue» ' +
      `хранится ${resumableMinutes} минут после завершения; его идентификатор — x-request-id ответа. Из заданий поток есть ` +
      'только у чатов, в течение 24 часов после завершения.',
  });
