import type { ChatRequest } from '../../shared/contract/chat.ts';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import { operations } from '../../shared/contract/operations.ts';
import { noChannel } from '../../shared/reply/reply-channel.ts';
import type { LentBuffer } from '../../shared/runtime/buffer-pool.ts';
import type { DispatchedChat, NewChatJob } from '../dispatch/dispatch-chat.ts';
import type { Receiver } from '../dispatch/waiter.ts';
import { readFiles } from '../files/read-files.ts';
import { admit, type Admitted } from '../middleware/admit.ts';
import { holderOf } from '../middleware/authenticate.ts';
import { callerSignal } from '../middleware/caller-signal.ts';
import { preAdmit, preAdmitDoubtful, precheckBalance } from '../middleware/pre-admit.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { SseStream } from '../present/sse-stream.ts';
import type { Services } from '../services.ts';
import { createCountingTurn } from './counting-turn.ts';
import { estimateChat, type ChatEstimate } from './estimate-chat.ts';
import { findModel } from './find-model.ts';
import { prepareChat } from './prepare-chat.ts';
import { hasFiles } from './prompt-content.ts';
import { recallReasoning } from './recall-reasoning.ts';
import { respondAsync } from './respond-async.ts';
import { sendBody } from './send-body.ts';

export function createChat(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const asked = context.state.body as ChatRequest;
    const model = findModel(services, asked.model, operations.createChatCompletion.modelTypes);
    const body = prepareChat(asked, model);
    precheckBalance(context, model);
    // Reading documents costs the process as much as a large body does.
    if (hasFiles(body)) await preAdmit(services, context, model);
    else await preAdmitDoubtful(services, context, model);
    const { accountId } = holderOf(context);
    const [recalled, files] = await Promise.all([
      recallReasoning(services.reasoning, accountId, body, model),
      readFiles(services.documents, accountId, body, model, callerSignal(context.res)),
    ]);
    const contents = { files, reasoning: recalled };
    const estimated = await estimateChat(body, model, contents, createCountingTurn(services, context, model));
    const admitted = await admit(services, context, estimated.estimate);
    const createWork = (first: Admitted) => ({
      operation: 'chat.completions' as const,
      job: { ...toJob(body, estimated, first), replyChannel: noChannel, attempt: 1 },
      format: null,
    });
    if (await respondAsync(services, context, admitted, createWork)) return;
    const start = (receiver: Receiver): Promise<DispatchedChat> =>
      admitted.outcome === 'attached'
        ? Promise.resolve(services.chats.attach(admitted, receiver))
        : services.chats.dispatch(toJob(body, estimated, admitted), receiver);
    if (body.stream === true) await streamAnswer(context, start);
    else await sendAnswer(context, start);
  };
}

/** Has the chat run, or found where it is kept, and its answer handed to the receiver. */
type StartChat = (receiver: Receiver) => Promise<DispatchedChat>;

async function streamAnswer(context: ApiContext, start: StartChat): Promise<void> {
  const stream = new SseStream(context.res);
  await start(stream).then(
    (chat) => stream.attach(chat),
    (error: unknown) => stream.fail(toAppError(error)),
  );
  // The stream writes its own head and bytes; Koa has nothing to add unless it fails before the first.
  await stream.finished;
  if (stream.failure !== null) context.state.error = stream.failure;
  context.respond = false;
}

async function sendAnswer(context: ApiContext, start: StartChat): Promise<void> {
  let cancel = (): void => undefined;
  const answer = new Promise<LentBuffer>((resolve, reject) => {
    const receiver: Receiver = {
      response: context.res,
      delta: () => undefined,
      end: resolve,
      fail: reject,
    };
    start(receiver).then((chat) => {
      cancel = () => chat.cancel();
      if (context.res.destroyed) cancel();
    }, reject);
    context.res.once('close', () => {
      if (context.res.writableFinished) return;
      cancel();
      reject(new AppError('job_cancelled'));
    });
  });
  const { bytes, giveBack } = await answer;
  try {
    await sendBody(context, bytes);
  } finally {
    giveBack();
  }
}

const toJob = (
  body: ChatRequest,
  { choices, mostPromptTokens, reasoning }: ChatEstimate,
  admitted: Admitted,
): NewChatJob => ({
  v: 1,
  kind: 'chat',
  request: admitted.request,
  body: boundBody(body, choices, admitted),
  mostPromptTokens,
  reservedTokens: admitted.units,
  ...(reasoning.length === 0 ? {} : { reasoning }),
});

/** The body as the vendor gets it: as many tokens to each choice as the reservation affords, under the caller's name. */
function boundBody(body: ChatRequest, choices: number, { units }: Admitted): ChatRequest {
  const { max_completion_tokens: newer, max_tokens: older, ...rest } = body;
  // More than was asked for is reserved where a vendor reasons beyond the bound.
  const tokens = Math.min(newer || older || Infinity, Math.max(1, Math.floor(units / choices)));
  return { ...rest, [newer ? 'max_completion_tokens' : 'max_tokens']: tokens };
}
