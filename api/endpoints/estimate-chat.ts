import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { ChatRequest } from '../../shared/contract/chat.ts';
import { computeWorstCase, noUsage } from '../../shared/pricing/cost.ts';
import { allowForSearch, countSearchCalls, maySearch } from '../../shared/pricing/search-allowance.ts';
import { findMostPromptTokens, isBounded, type PromptMakeup } from '../../shared/pricing/usage-bounds.ts';
import type { CountingTurn } from '../../shared/pricing/count-tokens.ts';
import type { RecalledReasoning } from '../../shared/queue/job-kinds.ts';
import { countChoices, findServingRoutes } from '../../shared/routing/chat-needs.ts';
import type { CountedFile } from '../files/file-content.ts';
import type { Estimate } from '../middleware/admit.ts';
import { countMedia, listAdditions, listTexts } from './prompt-content.ts';
import { PromptCounter } from './prompt-counter.ts';

/** What a vendor's chat form adds to each message, and to start the answer; as OpenAI counts it, rounded up. */
const tokensPerMessage = 4;
const tokensToAnswer = 3;
/** As Gemini counts; others count less. */
const tokensPerSoundSecond = 32;

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

/** What is sent to the vendor with the prepared body, or in place of its bytes. */
export interface ChatContents {
  readonly files: readonly CountedFile[];
  /** Oldest first. */
  readonly reasoning: readonly RecalledReasoning[];
}

export interface ChatEstimate {
  readonly estimate: Estimate;
  /** How many answers are made: fewer than were asked for where no route makes more than one. */
  readonly choices: number;
  /** The most that the prompt can count in any vocabulary. */
  readonly mostPromptTokens: number;
  /** As much of the recalled reasoning as was counted: no more than this may be sent. */
  readonly reasoning: readonly RecalledReasoning[];
}

/**
 * The most that a chat can use: everything that goes to the vendor is counted.
 * @throws AppError `content_too_long` for a prompt beyond the model's context
 */
export async function estimateChat(
  body: ChatRequest,
  model: CatalogModel,
  contents: ChatContents,
  turn: CountingTurn,
): Promise<ChatEstimate> {
  const counter = new PromptCounter(model, turn);
  const makeup = await countPrompt(counter, body, model, contents.files);
  const reasoning = await countReasoning(counter, model, contents.reasoning);
  const promptTokens = counter.tokens;
  const mostPromptTokens = findMostPromptTokens({
    ...makeup,
    tokens: promptTokens,
    textBytes: counter.textBytes,
  });
  const serving = findServingRoutes(model.routes, body);
  const choices = Math.max(1, ...serving.map((route) => countChoices(route, body)));
  // Where a bound does not hold for all that is generated, the vendor keeps to none but its own.
  const isEachBounded = model.routes.every(isBounded);
  const asked = isEachBounded ? body.max_completion_tokens || body.max_tokens || 0 : 0;
  const slack = templateSlackTokens + Math.ceil(promptTokens * vendorCountSlack);
  const perChoice =
    asked > 0 ? Math.min(asked, findRoom(model, promptTokens, 0)) : findRoom(model, promptTokens, slack);
  const worst = computeWorstCase(model.pricing, {
    ...noUsage,
    promptTokens: maySearch(body, model)
      ? allowForSearch(model, counter.reservedTokens, countSearchCalls(body, model))
      : counter.reservedTokens,
    durationMs: Math.max(0, ...model.routes.map((route) => route.upstream.timeoutMs)),
  });
  // A prediction that is not borne out is charged as if it had been said.
  const predicted = BigInt((await countPrediction(counter, body, model)) * choices);
  const estimate = {
    model,
    promptTokens,
    fixedNano: worst.fixedNano + predicted * worst.nanoPerCompletionToken,
    nanoPerUnit: worst.nanoPerCompletionToken,
    wantedUnits: perChoice * choices,
    leastUnits: (isEachBounded ? Math.min(perChoice, leastCompletionTokens) : perChoice) * choices,
    sharePermille: asked > 0 || !isEachBounded ? 1_000 : openEndedSharePermille,
    user: body.user ?? null,
  };
  return { estimate, choices, mostPromptTokens, reasoning };
}

async function countPrediction(
  counter: PromptCounter,
  { prediction }: ChatRequest,
  model: CatalogModel,
): Promise<number> {
  if (!prediction) return 0;
  const counted = await counter.countUpTo(JSON.stringify(prediction), model.context);
  return counted?.tokens ?? model.context;
}

async function countPrompt(
  counter: PromptCounter,
  body: ChatRequest,
  model: CatalogModel,
  files: readonly CountedFile[],
): Promise<Omit<PromptMakeup, 'tokens' | 'textBytes'>> {
  const { images, soundSeconds } = countMedia(body, model.context / tokensPerSoundSecond);
  const pages = files.reduce((sum, file) => sum + file.pages, 0);
  const fileTokens = files.reduce((sum, file) => sum + file.tokens, 0);
  const audioTokens = Math.ceil(soundSeconds * tokensPerSoundSecond);
  const additions = listAdditions(body, model);
  counter.addTokens(
    tokensToAnswer +
      tokensPerMessage * body.messages.length +
      images * model.tokensPerPicture +
      pages * model.tokensPerPage +
      audioTokens +
      fileTokens +
      additions.tokens,
  );
  for (const { textTokens: tokens, textTokensElsewhere: tokensElsewhere } of files) {
    counter.add({ tokens, textBytes: 0, tokensElsewhere });
  }
  for (const text of listTexts(body)) await counter.addText(text);
  for (const text of additions.texts) await counter.addText(text);
  const unread = files.filter(({ tokens }) => tokens > 0).length;
  return {
    fileTextBytes: files.reduce((sum, { textBytes }) => sum + textBytes, 0),
    pictures: images + pages + unread,
    fileTokens,
    audioTokens,
  };
}

/**
 * Kept reasoning fills at most half of what the caller's own prompt leaves of the context, the latest first: callers
 * neither see nor can shorten what the gateway adds, so it never refuses a request of theirs that fits.
 */
async function countReasoning(
  counter: PromptCounter,
  model: CatalogModel,
  reasoning: readonly RecalledReasoning[],
): Promise<readonly RecalledReasoning[]> {
  let left = Math.floor((model.context - counter.tokens) / 2);
  let first = reasoning.length;
  while (first > 0) {
    const text = JSON.stringify(reasoning[first - 1]!.value);
    const part = await counter.countUpTo(text, left);
    if (part === null) break;
    counter.add(part);
    left -= part.tokens;
    first -= 1;
  }
  return reasoning.slice(first);
}
