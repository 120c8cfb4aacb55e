import type { ChatRequest, Message } from '../../shared/contract/chat.ts';
import { AppError, invalidField } from '../../shared/contract/errors.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { computeWorstCase, noUsage } from '../../shared/pricing/cost.ts';
import { countTokensAsync } from '../../shared/pricing/count-tokens.ts';
import type { Receiver } from '../dispatch/reply-waiters.ts';
import { admit, type Admitted, type Estimate } from '../middleware/admit.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { SseStream } from '../present/sse-stream.ts';
import type { Services } from '../services.ts';
import { findModel } from './find-model.ts';

/** What a vendor's chat form adds to each message, and to start the answer; as OpenAI counts it, rounded up. */
const tokensPerMessage = 4;
const tokensToAnswer = 3;
/** A picture, whatever its size: the most that OpenAI's high detail takes for one is 1 105. */
const tokensPerImage = 1_105;

/**
 * A chat that names no `max_tokens` may reserve half of what can be spent, so that it does not lock a small account
 * out of its second request; at least these tokens are worth an answer.
 */
const openEndedSharePermille = 500;
const leastCompletionTokens = 16;

export function createChat(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const body = context.state.body as ChatRequest;
    const model = findModel(services, body.model, ['chat', 'vision']);
    checkOptions(body, model);
    const estimate = await estimateChat(body, model);
    const admitted = await admit(services, context, estimate);
    const job = {
      v: 1 as const,
      kind: 'chat' as const,
      request: admitted.request,
      body: boundBody(body, admitted),
    };
    if (body.stream === true) await streamAnswer(services, context, job);
    else await sendAnswer(services, context, job);
  };
}

type NewChatJob = Parameters<Services['chats']['dispatch']>[0];

async function streamAnswer({ chats }: Services, context: ApiContext, job: NewChatJob): Promise<void> {
  const stream = new SseStream(context.res);
  stream.attach(await chats.dispatch(job, stream));
  // The stream writes its own head and bytes; Koa has nothing to add unless it fails before the first.
  await stream.finished;
  context.respond = false;
}

async function sendAnswer(services: Services, context: ApiContext, job: NewChatJob): Promise<void> {
  let cancel = (): void => undefined;
  const answer = new Promise<Buffer>((resolve, reject) => {
    const receiver: Receiver = {
      delta: () => undefined,
      end: (result) => {
        if ('bytes' in result) resolve(result.bytes);
        else services.payloads.take(result.stored).then((bytes) => resolve(bytes ?? Buffer.alloc(0)), reject);
      },
      fail: reject,
    };
    services.chats.dispatch(job, receiver).then((chat) => {
      cancel = () => chat.cancel();
      if (context.res.destroyed) cancel();
    }, reject);
    context.res.once('close', () => {
      if (context.res.writableFinished) return;
      cancel();
      reject(new AppError('job_cancelled'));
    });
  });
  const bytes = await answer;
  if (bytes.length === 0)
    throw new AppError('service_unavailable', { message: 'The answer was lost on its way.' });
  context.type = 'application/json';
  context.body = bytes;
}

function checkOptions(body: ChatRequest, { published }: CatalogModel): void {
  const check = (name: 'reasoning_effort' | 'image_quality'): void => {
    const value = body[name];
    const choices = published[name]?.choices;
    if (value === null || value === undefined || choices === null || choices === undefined) return;
    if (!choices.includes(value)) throw invalidField(['body', name], `must be one of: ${choices.join(', ')}`);
  };
  check('reasoning_effort');
  check('image_quality');
}

/** @throws AppError `content_too_long` for a prompt beyond the model's context */
async function estimateChat(body: ChatRequest, model: CatalogModel): Promise<Estimate> {
  const tooLong = (): AppError =>
    invalidField(
      ['body', 'messages'],
      `The messages are longer than the model's context of ${model.context} tokens.`,
      {
        code: 'content_too_long',
      },
    );
  let promptTokens = tokensToAnswer;
  for (const message of body.messages) {
    const { text, images } = readMessage(message);
    const counted = await countTokensAsync(text, { limit: model.context });
    if (counted === null) throw tooLong();
    promptTokens += counted + tokensPerMessage + images * tokensPerImage;
  }
  if (body.tools?.length)
    promptTokens +=
      (await countTokensAsync(JSON.stringify(body.tools), { limit: model.context })) ?? model.context;
  if (promptTokens > model.context) throw tooLong();
  const choices = body.n ?? 1;
  const room = Math.max(1, Math.min(model.maxOutputTokens, model.context - promptTokens));
  const asked = body.max_completion_tokens || body.max_tokens || 0;
  const perChoice = asked > 0 ? Math.min(asked, room) : room;
  const worst = computeWorstCase(model.pricing, {
    ...noUsage,
    promptTokens,
    durationMs: longestCallMs(model),
  });
  return {
    model,
    promptTokens,
    fixedNano: worst.fixedNano,
    nanoPerUnit: worst.nanoPerCompletionToken,
    wantedUnits: perChoice * choices,
    leastUnits: Math.min(perChoice, leastCompletionTokens) * choices,
    sharePermille: asked > 0 ? 1_000 : openEndedSharePermille,
    user: body.user ?? null,
  };
}

function longestCallMs({ routes }: CatalogModel): number {
  return Math.max(0, ...routes.map((route) => route.upstream.timeoutMs));
}

function readMessage({ content, tool_calls: toolCalls }: Message): { text: string; images: number } {
  const texts: string[] = [];
  let images = 0;
  if (typeof content === 'string') texts.push(content);
  else {
    for (const item of content ?? []) {
      if (item.text) texts.push(item.text);
      if (item.image_url) images += 1;
    }
  }
  for (const call of toolCalls ?? []) texts.push(call.function.name, call.function.arguments ?? '');
  return { text: texts.join('\n'), images };
}

/** The body as the vendor gets it: as many tokens to each choice as the reservation affords. */
function boundBody(body: ChatRequest, { units }: Admitted): ChatRequest {
  const { max_completion_tokens: _given, ...rest } = body;
  return { ...rest, max_tokens: Math.max(1, Math.floor(units / (body.n ?? 1))) };
}
