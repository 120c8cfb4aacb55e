import type { ChatRequest } from '../../../shared/contract/chat.ts';
import { AppError, toAppError } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import { noChannel } from '../../../shared/work/queue/job-kinds.ts';
import { admit, type Admitted } from '../../admission/admit.ts';
import { preAdmit, preAdmitIfLikelyRejected, precheckBalance } from '../../admission/pre-admit.ts';
import type { DispatchedChat, NewChatJob } from '../../requests/dispatch/chat-dispatcher.ts';
import type { Receiver } from '../../requests/replies/pending-reply.ts';
import { receiveWhole } from '../../requests/replies/receive-whole.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { readFiles } from '../../../shared/preparing/documents/read-files.ts';
import { authenticate } from '../../http/middleware/authenticate.ts';
import { noteRejections } from '../../http/middleware/note-rejections.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import { readModelRequestOptions } from '../../http/middleware/read-model-request-options.ts';
import { SseStream } from '../../requests/replies/sse-stream.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { rejectAsyncStream, rejectResumableWhole } from '../../http/request/model-request-options.ts';
import { keyHolderOf } from '../../http/request/holder.ts';
import { awaitResponse } from '../../responses/await-response.ts';
import { createCountingTurn } from '../counting-turn.ts';
import { CountedTexts } from '../../../shared/preparing/tokens/counted-texts.ts';
import {
  estimateChat,
  type ChatContents,
  type ChatEstimate,
} from '../../../shared/preparing/chat/estimate-chat.ts';
import { findModel } from '../../../shared/preparing/find-model.ts';
import { loadReasoning } from '../../../shared/preparing/chat/load-reasoning.ts';
import { checkChat } from '../../../shared/preparing/chat/check-chat.ts';
import { translateFunctions } from '../../../shared/preparing/chat/translate-functions.ts';
import { hasFiles } from '../../../shared/preparing/chat/prompt-content.ts';
import { awaitJob } from '../../responses/await-job.ts';
import { respondAsync } from '../../responses/respond-async.ts';
import { sendBody } from '../../responses/send-body.ts';
import { streamResponse } from '../../responses/stream-response.ts';

export const createChatCompletion = defineEndpoint(
  operations.createChatCompletion,
  [authenticate, noteRejections, readModelRequestOptions, awaitJob, parseBody],
  (services) => {
    const countedTexts = new CountedTexts();
    return async (context) => {
      const requested = context.state.body;
      rejectAsyncStream(context);
      rejectResumableWhole(context);
      const model = findModel(services.catalog, requested.model, operations.createChatCompletion.modelTypes);
      const { body: translated, wantsFunctionCall } = translateFunctions(requested);
      const body = checkChat(translated, model);
      precheckBalance(context, model);
      // Reading documents takes as much time as reading a large body, so check the account first.
      if (hasFiles(body)) await preAdmit(services, context, model);
      else await preAdmitIfLikelyRejected(services, context, model);
      const { accountId } = keyHolderOf(context);
      const contents: ChatContents = {
        files: await readFiles(services.documents, accountId, body, model, context.state.signal),
        loadReasoning: (turn) => loadReasoning(services.reasoning, accountId, body, model, turn),
      };
      const estimated = await estimateChat(body, model, contents, {
        turn: createCountingTurn(services, context, model),
        countedTexts,
      });
      const { estimate } = estimated;
      const toJob = (admitted: AdmittedUnits): NewChatJob =>
        createJob(body, estimated, admitted, wantsFunctionCall);
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

const createJob = (
  body: ChatRequest,
  { choices, mostPromptTokens, reasoning }: ChatEstimate,
  admitted: AdmittedUnits,
  wantsFunctionCall: boolean,
): NewChatJob => ({
  v: 1,
  kind: 'chat',
  request: admitted.request,
  body: boundBody(body, choices, admitted),
  mostPromptTokens,
  reservedTokens: admitted.units,
  ...(reasoning.length === 0 ? {} : { reasoning }),
  ...(wantsFunctionCall && { wantsFunctionCall }),
});

/** Returns the body for the vendor, with the reserved tokens split evenly among the choices. */
function boundBody(body: ChatRequest, choices: number, { units }: AdmittedUnits): ChatRequest {
  const { max_completion_tokens: newer, max_tokens: older, ...rest } = body;
  // The reservation may have more tokens than requested, if a vendor's reasoning may exceed the bound. So the requested
  // bound still applies.
  const tokens = Math.min(newer || older || Infinity, Math.max(1, Math.floor(units / choices)));
  return { ...rest, [newer ? 'max_completion_tokens' : 'max_tokens']: tokens };
}
