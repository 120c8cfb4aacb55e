import { batchOperations, type BatchEndpoint } from '../../shared/contract/batch-terms.ts';
import type { ChatRequest } from '../../shared/contract/chat.ts';
import type { EmbeddingRequest } from '../../shared/contract/embeddings.ts';
import { invalidField } from '../../shared/contract/errors.ts';
import { reasonTexts } from '../../shared/contract/reason-texts.ts';
import { isRecord } from '../../shared/encoding/json-record.ts';
import { prepareChat, type ChatPreparationDeps } from '../../shared/preparing/chat/prepare-chat.ts';
import { prepareEmbedding } from '../../shared/preparing/embeddings/prepare-embedding.ts';
import type { AnyImageRequest } from '../../shared/preparing/images/check-image-request.ts';
import type { PrepareOptions } from '../../shared/preparing/preparation.ts';
import { validateBody } from '../../shared/preparing/validate-body.ts';
import { prepareImages } from '../../shared/preparing/images/prepare-images.ts';
import type { ReadyLine } from './ready-line.ts';

export type LinePreparationDeps = ChatPreparationDeps;

/**
 * Checks a line as a single request is checked.
 * @throws AppError as a single request gets; the signal's reason
 */
export async function prepareLine(
  deps: LinePreparationDeps,
  endpoint: BatchEndpoint,
  body: unknown,
  options: Pick<PrepareOptions, 'accountId' | 'signal' | 'countingTurn'>,
): Promise<Pick<ReadyLine, 'model' | 'estimate' | 'work'>> {
  checkResponseFormat(body);
  const { operationId } = batchOperations[endpoint];
  // Fills in defaults in place.
  const valid = validateBody(operationId, body);
  const { stream } = valid as { readonly stream?: unknown };
  if (stream === true) throw invalidField(['body', 'stream'], reasonTexts.streamInBatch.en);
  switch (operationId) {
    case 'createEmbedding': {
      const prepared = await prepareEmbedding(deps, valid as EmbeddingRequest, options);
      const { model, estimate, job, format } = prepared;
      return { model, estimate, work: { kind: 'embedding', job, format } };
    }
    case 'createChatCompletion': {
      const { model, estimate, job } = await prepareChat(deps, valid as ChatRequest, options);
      return { model, estimate, work: { kind: 'chat', job } };
    }
    case 'createImage':
    case 'editImage': {
      const request = { ...(valid as AnyImageRequest), response_format: 'url' } as const;
      const { model, estimate, job } = await prepareImages(deps, operationId, request, options);
      return { model, estimate, work: { kind: 'image', job } };
    }
    default:
      return operationId satisfies never;
  }
}

/** Images in a file with results would make it too large to read. */
function checkResponseFormat(body: unknown): void {
  if (!isRecord(body) || body['response_format'] !== 'b64_json') return;
  throw invalidField(['body', 'response_format'], reasonTexts.formatInBatch.en);
}
