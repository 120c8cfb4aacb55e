import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { ModelType } from '../../shared/contract/models.ts';
import type { BatchEndpoint } from '../../shared/contract/batch-terms.ts';
import { createChatCompletion, type ChatRequest } from '../../shared/contract/chat.ts';
import { createEmbedding, type EmbeddingRequest } from '../../shared/contract/embeddings.ts';
import { invalidField } from '../../shared/contract/errors.ts';
import { createImage, editImage } from '../../shared/contract/images.ts';
import { isRecord } from '../../shared/encoding/json-record.ts';
import { prepareChat, type ChatPreparationDeps } from '../../shared/preparing/chat/prepare-chat.ts';
import { prepareEmbedding } from '../../shared/preparing/embeddings/prepare-embedding.ts';
import type { AnyImageRequest } from '../../shared/preparing/images/check-image-request.ts';
import type { PrepareOptions } from '../../shared/preparing/preparation.ts';
import { validateBody } from '../../shared/preparing/validate-body.ts';
import { prepareImages } from '../../shared/preparing/images/prepare-images.ts';
import { readJson } from '../upstreams/read-json.ts';
import type { SliceLine } from './read-slice.ts';
import type { ReadyLine } from './ready-line.ts';

const operations = {
  '/v1/embeddings': createEmbedding,
  '/v1/chat/completions': createChatCompletion,
  '/v1/images/generations': createImage,
  '/v1/images/edits': editImage,
} as const;

const operationIds = {
  '/v1/embeddings': 'createEmbedding',
  '/v1/chat/completions': 'createChatCompletion',
  '/v1/images/generations': 'createImage',
  '/v1/images/edits': 'editImage',
} as const;

/** The names around the body of a line, and its `custom_id`. */
const maxAroundBodyBytes = 8_192;

/** At the beginning of the first line of some files. */
const byteOrderMark = Buffer.from('\ufeff');

/** A longer line is parsed in the account's event-loop turns. */
const smallLineBytes = 64 * 1024;

/** The longest line of an endpoint that is read whole. */
export const maxLineBytes = (endpoint: BatchEndpoint): number =>
  operations[endpoint].bodyLimitBytes + maxAroundBodyBytes;

/** Whether a line of this endpoint may name the model. */
export const isModelOf = (endpoint: BatchEndpoint, { type }: CatalogModel): boolean =>
  (operations[endpoint].modelTypes as readonly ModelType[]).includes(type);

/** A line as its file has it. */
export interface ParsedLine {
  readonly customId: string;
  readonly body: unknown;
}

/** @throws SyntaxError; the file was checked, so it should not */
export async function parseLine({ bytes: all }: SliceLine, accountId: string): Promise<ParsedLine> {
  const bytes =
    all[0] === byteOrderMark[0] && all.subarray(0, 3).equals(byteOrderMark) ? all.subarray(3) : all;
  const value: unknown =
    bytes.length <= smallLineBytes
      ? JSON.parse(bytes.toString('utf8'))
      : (await readJson(toChunks(bytes), accountId))?.value;
  if (!isRecord(value) || typeof value['custom_id'] !== 'string')
    throw new SyntaxError('The line is not a request.');
  return { customId: value['custom_id'], body: value['body'] ?? {} };
}

async function* toChunks(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

const customIdPattern = /"custom_id"\s*:\s*("(?:[^"\\]|\\.){1,3072}")/;

/** Finds the `custom_id` of a line that is too long to be parsed. Null if it is not near its beginning. */
export function findCustomId({ bytes }: SliceLine): string | null {
  const [, text] = customIdPattern.exec(bytes.toString('utf8', 0, maxAroundBodyBytes)) ?? [];
  return text === undefined ? null : (JSON.parse(text) as string);
}

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
  // Fills in defaults in place.
  const valid = validateBody(operationIds[endpoint], body);
  const { stream } = valid as { readonly stream?: unknown };
  if (stream === true) throw invalidField(['body', 'stream'], 'cannot be true in a batch: remove this field');
  switch (endpoint) {
    case '/v1/embeddings': {
      const prepared = await prepareEmbedding(deps, valid as EmbeddingRequest, options);
      const { model, estimate, job, format } = prepared;
      return { model, estimate, work: { kind: 'embedding', job, format } };
    }
    case '/v1/chat/completions': {
      const { model, estimate, job } = await prepareChat(deps, valid as ChatRequest, options);
      return { model, estimate, work: { kind: 'chat', job } };
    }
    case '/v1/images/generations':
    case '/v1/images/edits': {
      const operation = endpoint === '/v1/images/edits' ? 'editImage' : 'createImage';
      const request = { ...(valid as AnyImageRequest), response_format: 'url' } as const;
      const { model, estimate, job } = await prepareImages(deps, operation, request, options);
      return { model, estimate, work: { kind: 'image', job } };
    }
    default:
      return endpoint satisfies never;
  }
}

/** Images in a file with results would make it too large to read. */
function checkResponseFormat(body: unknown): void {
  if (!isRecord(body) || body['response_format'] !== 'b64_json') return;
  throw invalidField(
    ['body', 'response_format'],
    'must be "url" in a batch: remove this field, or set it to "url"',
  );
}
