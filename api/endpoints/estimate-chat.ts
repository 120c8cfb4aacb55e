import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { ChatRequest } from '../../shared/contract/chat.ts';
import type { Message } from '../../shared/contract/chat-messages.ts';
import { type AppError, invalidField } from '../../shared/contract/errors.ts';
import { computeWorstCase, noUsage } from '../../shared/pricing/cost.ts';
import { allowForSearch } from '../../shared/pricing/search-allowance.ts';
import { countTokensAsync, type CountingTurn } from '../../shared/pricing/count-tokens.ts';
import type { Estimate } from '../middleware/admit.ts';
import { asksSearch } from './prepare-chat.ts';

/** What a vendor's chat form adds to each message, and to start the answer; as OpenAI counts it, rounded up. */
const tokensPerMessage = 4;
const tokensToAnswer = 3;
/** Text of a file is at most a token for so many characters of its base64. */
const charactersPerFileToken = 4;
/** 32 tokens a second, which Gemini counts, of sound of 32 kbit a second: what holds less sound is larger. */
const charactersPerAudioToken = 160;

/**
 * A chat that names no `max_tokens` may reserve half of what can be spent, so that it does not lock a small account
 * out of its second request; at least these tokens are worth an answer.
 */
const openEndedSharePermille = 500;
const leastCompletionTokens = 16;

/**
 * How much longer than by our count a vendor may find a prompt. A vendor that is strict about its context would refuse
 * an open-ended chat whose bound fills it to the last token.
 */
const vendorCountSlack = 0.02;
const templateSlackTokens = 64;

/** The tokens that are left for one answer of a prompt of this length. */
function findRoom(model: CatalogModel, promptTokens: number, slackTokens: number): number {
  return Math.max(1, Math.min(model.maxOutputTokens, model.context - promptTokens - slackTokens));
}

/**
 * The most that a chat can use: everything that goes to the vendor is counted.
 * @throws AppError `content_too_long` for a prompt beyond the model's context
 */
export async function estimateChat(
  body: ChatRequest,
  model: CatalogModel,
  turn: CountingTurn,
): Promise<Estimate> {
  const promptTokens = await countPrompt(body, model, turn);
  const choices = body.n ?? 1;
  // Where a route is told no bound, the vendor keeps to none but its own.
  const isBounded = !model.routes.some(({ drops }) => boundNames.every((name) => drops.has(name)));
  const asked = isBounded ? body.max_completion_tokens || body.max_tokens || 0 : 0;
  const slack = templateSlackTokens + Math.ceil(promptTokens * vendorCountSlack);
  const perChoice =
    asked > 0 ? Math.min(asked, findRoom(model, promptTokens, 0)) : findRoom(model, promptTokens, slack);
  const worst = computeWorstCase(model.pricing, {
    ...noUsage,
    promptTokens: asksSearch(body) ? allowForSearch(model, promptTokens) : promptTokens,
    durationMs: Math.max(0, ...model.routes.map((route) => route.upstream.timeoutMs)),
  });
  // A prediction that is not borne out is charged as if it had been said.
  const predicted = BigInt((await countPrediction(body, model, turn)) * choices);
  return {
    model,
    promptTokens,
    fixedNano: worst.fixedNano + predicted * worst.nanoPerCompletionToken,
    nanoPerUnit: worst.nanoPerCompletionToken,
    wantedUnits: perChoice * choices,
    leastUnits: (isBounded ? Math.min(perChoice, leastCompletionTokens) : perChoice) * choices,
    sharePermille: asked > 0 || !isBounded ? 1_000 : openEndedSharePermille,
    user: body.user ?? null,
  };
}

const boundNames = ['max_tokens', 'max_completion_tokens'];

async function countPrediction(
  { prediction }: ChatRequest,
  model: CatalogModel,
  turn: CountingTurn,
): Promise<number> {
  if (!prediction) return 0;
  const counted = await countTokensAsync(JSON.stringify(prediction), { limit: model.context, turn });
  return counted ?? model.context;
}

async function countPrompt(body: ChatRequest, model: CatalogModel, turn: CountingTurn): Promise<number> {
  let tokens = tokensToAnswer;
  const count = async (text: string): Promise<void> => {
    // What is counted stops at what is left of the context: a prompt far beyond it costs no more than one just beyond.
    const counted = await countTokensAsync(text, { limit: Math.max(0, model.context - tokens), turn });
    if (counted === null) throw tooLong(model);
    tokens += counted;
  };
  for (const message of body.messages) {
    const { text, images, fileCharacters, audioCharacters } = readMessage(message);
    tokens +=
      tokensPerMessage +
      images * model.tokensPerPicture +
      Math.ceil(fileCharacters / charactersPerFileToken) +
      Math.ceil(audioCharacters / charactersPerAudioToken);
    await count(text);
  }
  if (body.tools?.length) await count(JSON.stringify(body.tools));
  if (body.response_format) await count(JSON.stringify(body.response_format));
  if (tokens > model.context) throw tooLong(model);
  return tokens;
}

/** What is counted of the messages. */
export function* listTexts({ messages }: ChatRequest): Generator<string> {
  for (const message of messages) yield readMessage(message).text;
}

function tooLong(model: CatalogModel): AppError {
  const msg = `The messages are longer than the model's context of ${model.context} tokens.`;
  return invalidField(['body', 'messages'], msg, { code: 'content_too_long' });
}

interface MessageParts {
  readonly text: string;
  readonly images: number;
  readonly fileCharacters: number;
  readonly audioCharacters: number;
}

function readMessage({ content, name, refusal, tool_calls: toolCalls }: Message): MessageParts {
  const texts: string[] = [];
  let images = 0;
  let fileCharacters = 0;
  let audioCharacters = 0;
  if (name) texts.push(name);
  if (refusal) texts.push(refusal);
  if (typeof content === 'string') texts.push(content);
  else {
    for (const item of content ?? []) {
      if (item.text) texts.push(item.text);
      if (item.refusal) texts.push(item.refusal);
      if (item.image_url) images += 1;
      if (item.file) fileCharacters += (item.file.file_data ?? '').length;
      audioCharacters += item.input_audio?.data.length ?? 0;
    }
  }
  for (const call of toolCalls ?? []) texts.push(call.function.name, call.function.arguments ?? '');
  return { text: texts.join('\n'), images, fileCharacters, audioCharacters };
}
