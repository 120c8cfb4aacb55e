import { shorten } from '../platform/runtime/shorten.ts';
import { AppError, invalidField } from './errors.ts';
import { reasonTexts, writeReason } from './reason-texts.ts';

/**
 * @param loc the location of the model in the request; omitted if the model is in the URL
 * @param similar a model with almost the same name
 */
export function modelNotFound(id: string, loc: readonly string[] = [], similar?: string): AppError {
  const model = shorten(id);
  const { en: msg, ru: msgRu } =
    similar === undefined
      ? writeReason('modelNotFound', { model })
      : writeReason('modelNotFoundButSimilar', { model, similar });
  const issues = loc.length === 0 ? [] : [{ loc, msg, msgRu, type: 'model_not_found' }];
  return new AppError('model_not_found', { message: msg, messageRu: msgRu, issues });
}

/** @param id the model's id, if known */
export function modelDisabled(id?: string): AppError {
  const { en, ru } =
    id === undefined ? reasonTexts.thisModelDisabled : writeReason('modelDisabled', { model: shorten(id) });
  return invalidField(['body', 'model'], en, { code: 'model_disabled', msgRu: ru });
}
