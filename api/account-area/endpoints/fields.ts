import { invalidField, type AppError } from '../../../shared/contract/errors.ts';
import { normalizeEmail } from '../../../shared/encoding/email-address.ts';
import { normalizeTimeZone } from '../time-zone.ts';

/** Normalizes an email address for storage and mailing. @throws AppError `validation_failed` */
export function readEmail(text: string): string {
  const result = normalizeEmail(text);
  if ('problemEn' in result)
    throw invalidField(['body', 'email'], result.problemEn, { msgRu: result.problemRu });
  return result.email;
}

/** Normalizes a time zone to its IANA name. @throws AppError `validation_failed` */
export function readTimeZone(text: string): string {
  const timeZone = normalizeTimeZone(text);
  if (timeZone === null) {
    throw invalidField(
      ['body', 'timezone'],
      'must be the IANA name of a time zone, such as Europe/Moscow or UTC',
      { msgRu: 'должно быть названием часового пояса IANA, например Europe/Moscow или UTC' },
    );
  }
  return timeZone;
}

/**
 * The error for an invalid code. Does not reveal why the code is invalid: it was never mailed, was used, has expired,
 * or was mistyped too often.
 */
export const invalidMailedCode = (): AppError =>
  invalidField(
    ['body', 'code'],
    'The code is incorrect, expired or already used, or was sent for a different action. Check it for typos; after five attempts, request a new code.',
    {
      code: 'invalid_code',
      type: 'invalid_code',
      msgRu:
        'Код неверен, просрочен, уже использован или выслан для другого действия. Проверьте, нет ли опечаток; после пяти попыток запросите новый код.',
    },
  );
