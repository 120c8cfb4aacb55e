import type { Static } from 'typebox';
import { createChatCompletion } from '../contract/chat.ts';
import { createEmbedding } from '../contract/embeddings.ts';
import { createImage, editImage } from '../contract/images.ts';
import { compileValidator, type Validator } from '../contract/validation.ts';
import { checkParsedBody } from './json-body.ts';

/** The operations whose requests can be prepared here. */
export const modelOperations = { createChatCompletion, createEmbedding, createImage, editImage } as const;
export type ModelOperationId = keyof typeof modelOperations;

/** The valid body of an operation. */
export type BodyOf<Id extends ModelOperationId> = Static<(typeof modelOperations)[Id]['body']>;

const validators = new Map<ModelOperationId, Validator<unknown>>();

/**
 * Validates the body of a request that was parsed as a part of other JSON, and fills in defaults in place. The caller
 * limits its size.
 * @throws AppError `validation_failed`, as if the body had been sent by itself
 */
export function validateBody<Id extends ModelOperationId>(operationId: Id, body: unknown): BodyOf<Id> {
  checkParsedBody(body);
  let validate = validators.get(operationId);
  if (validate === undefined) {
    validate = compileValidator(modelOperations[operationId].body, 'body');
    validators.set(operationId, validate);
  }
  return validate(body) as BodyOf<Id>;
}
