import { createChatCompletion, type ChatRequest } from '../../contract/chat.ts';
import type { AdmittedRequest } from '../../money/admitted-request.ts';
import type { NewChatJob } from '../../work/queue/job-kinds.ts';
import type { ReasoningStore } from '../../work/reasoning-store.ts';
import type { DocumentReader } from '../documents/document-reader.ts';
import { readFiles } from '../documents/read-files.ts';
import { findModel } from '../find-model.ts';
import { createCountingTurn, type ModelCatalog, type Prepared, type PrepareOptions } from '../preparation.ts';
import type { CountedTexts } from '../tokens/counted-texts.ts';
import { checkChat } from './check-chat.ts';
import { estimateChat, type ChatContents, type ChatEstimate } from './estimate-chat.ts';
import { loadReasoning } from './load-reasoning.ts';
import { hasFiles } from './prompt-content.ts';
import { translateFunctions } from './translate-functions.ts';

export interface ChatPreparationDeps {
  readonly catalog: ModelCatalog;
  readonly documents: Pick<DocumentReader, 'read'>;
  readonly reasoning: Pick<ReasoningStore, 'load'>;
  /** One for all chats of the process. */
  readonly countedTexts: CountedTexts;
}

export interface PreparedChatJob extends Omit<ChatEstimate, 'estimate'> {
  /** For the vendor, except for the bound of its tokens, which depends on the reservation. */
  readonly body: ChatRequest;
  /** Whether the response must have the older form of tools. */
  readonly wantsFunctionCall: boolean;
}

/**
 * Prepares a chat for admission. Whether it is streamed makes no difference.
 * @param body valid according to the operation's schema
 * @throws AppError `model_not_found`, `model_disabled`, `validation_failed`, `context_length_exceeded`, `queue_full`;
 * the errors of the checks; the signal's reason
 */
export async function prepareChat(
  { catalog, documents, reasoning, countedTexts }: ChatPreparationDeps,
  body: ChatRequest,
  options: PrepareOptions,
): Promise<Prepared<PreparedChatJob>> {
  const { accountId, signal } = options;
  const model = findModel(catalog, body.model, createChatCompletion.modelTypes);
  const { body: translated, wantsFunctionCall } = translateFunctions(body);
  const checked = checkChat(translated, model);
  await options.checkEarly?.(model, hasFiles(checked));
  const contents: ChatContents = {
    files: await readFiles(documents, accountId, checked, model, signal),
    loadReasoning: (turn) => loadReasoning(reasoning, accountId, checked, model, turn),
  };
  const turn = createCountingTurn(options, model);
  const { estimate, ...estimated } = await estimateChat(checked, model, contents, { turn, countedTexts });
  return { model, estimate, job: { ...estimated, body: checked, wantsFunctionCall } };
}

/**
 * Creates the job of an admitted chat.
 * @param units completion tokens that were reserved, for all choices together
 */
export const createChatJob = (
  { body, choices, mostPromptTokens, reasoning, wantsFunctionCall }: PreparedChatJob,
  request: AdmittedRequest,
  units: number,
): NewChatJob => ({
  v: 1,
  kind: 'chat',
  request,
  body: boundBody(body, choices, units),
  mostPromptTokens,
  reservedTokens: units,
  ...(reasoning.length === 0 ? {} : { reasoning }),
  ...(wantsFunctionCall && { wantsFunctionCall }),
});

/** Returns the body for the vendor, with the reserved tokens split evenly among the choices. */
function boundBody(body: ChatRequest, choices: number, units: number): ChatRequest {
  const { max_completion_tokens: newer, max_tokens: older, ...rest } = body;
  // The reservation may have more tokens than requested, if a vendor's reasoning may exceed the bound. So the requested
  // bound still applies.
  const tokens = Math.min(newer || older || Infinity, Math.max(1, Math.floor(units / choices)));
  return { ...rest, [newer ? 'max_completion_tokens' : 'max_tokens']: tokens };
}
