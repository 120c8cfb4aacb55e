import { AppError, toAppError } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import { createChatJob, prepareChat } from '../../../shared/preparing/chat/prepare-chat.ts';
import { CountedTexts } from '../../../shared/preparing/tokens/counted-texts.ts';
import { noChannel, type NewChatJob } from '../../../shared/work/queue/job-kinds.ts';
import { admit, type Admitted } from '../../admission/admit.ts';
import type { DispatchedChat } from '../../requests/dispatch/chat-dispatcher.ts';
import type { Receiver } from '../../requests/replies/pending-reply.ts';
import { receiveWhole } from '../../requests/replies/receive-whole.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { noteRejections } from '../../http/middleware/note-rejections.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import { readModelRequestOptions } from '../../http/middleware/read-model-request-options.ts';
import { SseStream } from '../../requests/replies/sse-stream.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { rejectAsyncStream, rejectResumableWhole } from '../../http/request/model-request-options.ts';
import { awaitResponse } from '../../responses/await-response.ts';
import { createPrepareOptions } from '../prepare-options.ts';
import { awaitJob } from '../../responses/await-job.ts';
import { respondAsync } from '../../responses/respond-async.ts';
import { sendBody } from '../../responses/send-body.ts';
import { streamResponse } from '../../responses/stream-response.ts';

export const createChatCompletion = defineEndpoint(
  operations.createChatCompletion,
  [authenticateAccount, noteRejections, readModelRequestOptions, awaitJob, parseBody],
  (services) => {
    const { catalog, documents, reasoning } = services;
    const deps = { catalog, documents, reasoning, countedTexts: new CountedTexts() };
    return async (context) => {
      const { body } = context.state;
      rejectAsyncStream(context);
      rejectResumableWhole(context);
      const { estimate, job } = await prepareChat(deps, body, createPrepareOptions(services, context));
      const toJob = ({ request, units }: AdmittedUnits): NewChatJob => createChatJob(job, request, units);
      const admitted = await admit(services, context, estimate, (request) =>
        services.chats.place(toJob({ request, units: estimate.requestedUnits }), context.res),
      );
      const createWork = (admission: Admitted) => ({
        operation: 'chat.completions' as const,
        job: { ...toJob(admission), replyChannel: noChannel, attempt: 1 },
        format: null,
      });
      if (await respondAsync(services, context, admitted, createWork)) return;
      const start = async (receiver: Receiver): Promise<DispatchedChat> => {
        if (admitted.outcome === 'attached') return services.chats.attach(admitted, receiver);
        if (admitted.placed !== null) return admitted.placed.receive(receiver);
        return await services.chats.dispatch(toJob(admitted), receiver);
      };
      if (body.stream === true) {
        const stream = new SseStream(context.res, context.state.signal, {
          firstCommentMs: services.firstCommentMs,
        });
        await streamResponse(context, stream, () => start(stream));
      } else await sendResponse(context, start);
    };
  },
);

/** Dispatches the chat, or follows its stored response, with this receiver. */
type StartChat = (receiver: Receiver) => Promise<DispatchedChat>;

async function sendResponse(context: ApiContext, start: StartChat): Promise<void> {
  const { signal } = context.state;
  const { receiver, answer } = receiveWhole(context.res);
  let chat: DispatchedChat | null = null;
  // The response or an error may arrive before the dispatch has settled.
  start(receiver).then(
    (started) => {
      chat = started;
      if (signal.aborted) started.cancel();
    },
    (error: unknown) => receiver.fail(toAppError(error)),
  );
  const cancel = (): void => {
    chat?.cancel();
    receiver.fail(new AppError('job_cancelled'));
  };
  const { bytes, release } = await awaitResponse({ answer, cancel }, signal);
  try {
    await sendBody(context, bytes);
  } finally {
    release();
  }
}

type AdmittedUnits = Pick<Admitted, 'request' | 'units'>;
