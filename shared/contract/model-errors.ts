import { shorten } from '../platform/runtime/shorten.ts';
import { AppError, invalidField } from './errors.ts';

/**
 * @param loc the location of the model in the request; omitted if the model is in the URL
 * @param similar a model with almost the same name
 */
export function modelNotFound(id: string, loc: readonly string[] = [], similar?: string): AppError {
  const hint = similar === undefined ? '' : ` Did you mean "${similar}"?`;
  const msg = `The model "${shorten(id)}" does not exist.${hint} GET /v1/models lists the available models.`;
  const issues = loc.length === 0 ? [] : [{ loc, msg, type: 'model_not_found' }];
  return new AppError('model_not_found', { message: msg, issues });
}

/** @param id the model's id, if known */
export function modelDisabled(id?: string): AppError {
  const subject = id === undefined ? 'This model' : `The model "${shorten(id)}"`;
  const msg =
    `${subject} is disabled, or no vendor currently serves it. Choose a model that GET /v1/models lists as active, ` +
    'or try again later.';
  return invalidField(['body', 'model'], msg, { code: 'model_disabled' });
}
