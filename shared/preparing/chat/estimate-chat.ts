// decisions 0006, 0008
import { replyStartTokens, tokensPerMessage } from '../../catalog/added-tokens.ts';
import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import { allowForSearch, maxVendorCalls, maySearch } from '../../catalog/search-allowance.ts';
import { findMaxPromptTokens, isBounded, type PromptParts } from '../../catalog/usage-bounds.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import type { CountingTurn } from '../../catalog/count-tokens.ts';
import type { LoadedReasoning } from '../../work/queue/job-kinds.ts';
import { countChoices, findServingRoutes } from '../../routing/chat-needs.ts';
import { findWorstCase, type Estimate } from '../../money/estimate.ts';
import type { CountedFile } from '../documents/file-content.ts';
import { countMedia, listAdditions, listTexts } from './prompt-content.ts';
import { PromptCounter, type Counting } from '../tokens/prompt-counter.ts';

/** Gemini's rate; other vendors have lower ones. */
const tokensPerAudioSecond = 32;

/**
 * A chat without `max_tokens` may reserve at most half of the spendable balance, so that an account with little money
 * can still send its next request. The minimum is enough for a useful reply.
 */
const openEndedSharePermille = 500;
const minCompletionTokens = 16;

/**
 * Tokens of the context that stay unused, because a vendor's tokenizer may find more tokens in a prompt than ours does.
 * Otherwise, vendors with strict context checks would reject an open-ended chat whose bound fills the context to the
 * last token.
 */
const slackShare = 0.02;
const slackTokens = 64;
/**
 * A prompt that takes more room than the slack in the vendor's vocabulary leaves the reply at least this part of what
 * remains of the context. If that is still too much for the vendor, its rejection leads to a lower bound.
 */
const minReplyShare = 1 / 2;

/**
 * Returns the bound of an open-ended reply: what the prompt leaves of the context in the vendor's vocabulary, as far as
 * that can be known.
 */
function findOpenEndedBound(model: CatalogModel, { tokens, roomTokens }: PromptCounter): number {
  const remaining = model.context - tokens;
  const vocabularySlack = Math.min(roomTokens - tokens, remaining * (1 - minReplyShare));
  const slack = slackTokens + Math.ceil(Math.max(tokens * slackShare, vocabularySlack));
  return toReplyTokens(model, remaining - slack);
}

const toReplyTokens = (model: CatalogModel, available: number): number =>
  Math.max(1, Math.min(model.maxOutputTokens, available));

/**
 * Content that is tokenized in addition to the texts of the prepared body: stored reasoning, which is sent too, and the
 * files that the body contains as bytes.
 */
export interface ChatContents {
  readonly files: readonly CountedFile[];
  /** Loads the stored reasoning, oldest first. Called only for a prompt that fits the model's context. */
  readonly loadReasoning: (turn: CountingTurn) => Promise<readonly LoadedReasoning[]>;
}

export interface ChatEstimate {
  readonly estimate: Estimate;
  /** Number of choices generated; fewer than requested if no route can generate more than one. */
  readonly choices: number;
  /** Maximum tokens of the prompt in any vocabulary. */
  readonly mostPromptTokens: number;
  /** The part of the loaded reasoning that the estimate includes. Only this part may be sent to the vendor. */
  readonly reasoning: readonly LoadedReasoning[];
}

/**
 * Estimates the maximum usage of a chat. Includes everything that is sent to the vendor.
 * @throws AppError `context_length_exceeded` for a prompt beyond the model's context
 */
export async function estimateChat(
  body: ChatRequest,
  model: CatalogModel,
  contents: ChatContents,
  counting: Counting,
): Promise<ChatEstimate> {
  const counter = new PromptCounter(model, counting);
  const promptParts = await countPrompt(counter, body, model, contents.files);
  const reasoning = await countReasoning(counter, model, await contents.loadReasoning(counting.turn));
  const promptTokens = counter.tokens;
  const mostPromptTokens = findMaxPromptTokens({
    ...promptParts,
    tokens: promptTokens,
    textBytes: counter.textBytes,
  });
  const serving = findServingRoutes(model.routes, body);
  const choices = Math.max(1, ...serving.map((route) => countChoices(route, body)));
  // On some routes the requested bound does not apply to everything that the vendor generates. If the model has such a
  // route, only the vendor's own maximum limits the output.
  const isEachBounded = model.routes.every(isBounded);
  const requested = isEachBounded ? body.max_completion_tokens || body.max_tokens || 0 : 0;
  const perChoice =
    requested > 0
      ? Math.min(requested, toReplyTokens(model, model.context - promptTokens))
      : findOpenEndedBound(model, counter);
  const worst = findWorstCase(model, {
    promptTokens: maySearch(body, model)
      ? allowForSearch(model, counter.reservedTokens, maxVendorCalls(body, model))
      : counter.reservedTokens,
  });
  // Vendors bill prediction tokens as output tokens if the output does not match them.
  const predicted = BigInt((await countPrediction(counter, body, model)) * choices);
  const estimate = {
    model,
    promptTokens,
    fixedNano: worst.fixedNano + predicted * worst.nanoPerCompletionToken,
    nanoPerUnit: worst.nanoPerCompletionToken,
    requestedUnits: perChoice * choices,
    minUnits: (isEachBounded ? Math.min(perChoice, minCompletionTokens) : perChoice) * choices,
    sharePermille: requested > 0 || !isEachBounded ? 1_000 : openEndedSharePermille,
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
): Promise<Omit<PromptParts, 'tokens' | 'textBytes'>> {
  const { images, audioSeconds } = countMedia(body, model.context / tokensPerAudioSecond);
  const pages = files.reduce((sum, file) => sum + file.pages, 0);
  const imageFiles = files.filter(({ imageTokens }) => imageTokens > 0);
  const isComplete = files.every((file) => file.isComplete);
  const audioTokens = Math.ceil(audioSeconds * tokensPerAudioSecond);
  const additions = listAdditions(body, model);
  counter.addTokens(
    replyStartTokens +
      tokensPerMessage * body.messages.length +
      images * model.tokensPerImage +
      pages * model.tokensPerPage +
      audioTokens +
      imageFiles.reduce((sum, { imageTokens }) => sum + imageTokens, 0) +
      additions.tokens,
  );
  for (const { textTokens: tokens, textTokensInOtherVocabularies: tokensInOtherVocabularies } of files) {
    counter.add({ tokens, textBytes: 0, tokensInOtherVocabularies, roomTokens: tokensInOtherVocabularies });
  }
  for (const text of listTexts(body)) await counter.addText(text);
  for (const text of additions.texts) await counter.addText(text);
  if (!isComplete) counter.reserveContext();
  return {
    fileTextBytes: files.reduce((sum, { textBytes }) => sum + textBytes, 0),
    pictures: images + pages + imageFiles.length,
    fileTokens: isComplete ? 0 : model.context,
    audioTokens,
  };
}

/**
 * Adds stored reasoning to the prompt, latest first, up to half of the context that the caller's prompt does not use.
 * Callers can neither see nor shorten the text that the gateway adds, so it must never cause the rejection of a request
 * that fits without it.
 */
async function countReasoning(
  counter: PromptCounter,
  model: CatalogModel,
  reasoning: readonly LoadedReasoning[],
): Promise<readonly LoadedReasoning[]> {
  let remaining = Math.floor((model.context - counter.tokens) / 2);
  let first = reasoning.length;
  while (first > 0) {
    const text = JSON.stringify(reasoning[first - 1]!.value);
    const part = await counter.countUpTo(text, remaining);
    if (part === null) break;
    counter.add(part);
    remaining -= part.tokens;
    first -= 1;
  }
  return reasoning.slice(first);
}
