import { AppError, invalidField } from '../../../shared/contract/errors.ts';

export function noMemory(): AppError {
  return new AppError('queue_full', {
    message: 'Requests in progress leave no memory for this body. Try again shortly.',
  });
}

/**
 * @param offset of an invalid byte; negative if all are valid
 * @throws AppError `validation_failed`
 */
export function checkUtf8(offset: number): void {
  if (offset < 0) return;
  const msg = `The body is not valid UTF-8: byte ${offset}, counted from 0, is invalid. Send text as UTF-8.`;
  throw invalidField(['body'], msg, { type: 'unicode_invalid' });
}
