import test from 'ava';
import { httpStatusErrors } from '../../../shared/contract/http-status-errors.ts';
import { errorKinds, type ErrorCode } from '../../../shared/contract/error-kinds.ts';
import { AppError, cancelledJobStatus } from '../../../shared/contract/errors.ts';

/** Matches a sentence or clause that tells the caller what to do or where to look. */
const instructions = {
  en: /(?:^|[.:] )(?:Ask|Change|Check|Choose|Contact|Correct|Make|Refill|Refresh|Request|See|Send|Shorten|Sign in|Try|Use|Wait|try)[ ,;]|\blists\b/,
  ru: /(?:^|[.:] )(?:Войдите|Выберите|Дождитесь|Запросите|Измените|Исправьте|Используйте|Обновите|Уменьшите|Обратитесь|Отправ(?:ьте|ляйте)|Переда(?:йте|вайте)|Повторите|Пополните|Попробуйте|Проверьте|Сократите|Укажите|повторите)[ ,;]|, обратитесь |Список |Допустимые /,
};

test('every error text says what to do', (t) => {
  for (const [code, { en, ru }] of Object.entries({ ...errorKinds, ...httpStatusErrors })) {
    t.regex(en, instructions.en, code);
    t.regex(ru, instructions.ru, code);
  }
});

test('an error has the status of its code, unless HTTP specifies another', (t) => {
  for (const code of Object.keys(errorKinds) as ErrorCode[]) {
    t.is(new AppError(code).status, errorKinds[code].status);
  }
  t.is(new AppError('validation_failed', { status: 400 }).status, 400);
});

test('if the status of an error differs from the status of its code, the text is that of the status', (t) => {
  const late = new AppError('deadline_exceeded', { status: 408 });
  t.is(late.message, httpStatusErrors[408]!.en);
  t.like(late.kind, { type: 'invalid_request_error', ru: httpStatusErrors[408]!.ru, status: 408 });
  t.like(new AppError('deadline_exceeded').kind, errorKinds.deadline_exceeded);
  const cancelled = new AppError('job_cancelled', { status: cancelledJobStatus });
  t.like(cancelled.kind, { status: 409, en: httpStatusErrors[409]!.en });
  t.is(new AppError('idempotency_conflict').message, errorKinds.idempotency_conflict.en);
});

test('for a code like service_unavailable callers see a general text, unless the error exposes its own', (t) => {
  const message = 'the ledger stream is at its bound';
  t.is(new AppError('service_unavailable', { message }).publicMessage, errorKinds.service_unavailable.en);
  t.is(new AppError('service_unavailable', { message, expose: true }).publicMessage, message);
  t.is(new AppError('not_found', { message }).publicMessage, message);
});

test('the Russian text of an error is shown only if its English text is; otherwise the text of its code is shown', (t) => {
  const texts = { message: 'There is no session 1.', messageRu: 'Сессии 1 нет.' };
  t.is(new AppError('not_found', texts).publicMessageRu, texts.messageRu);
  t.is(new AppError('service_unavailable', texts).publicMessageRu, errorKinds.service_unavailable.ru);
  t.is(new AppError('not_found').publicMessageRu, errorKinds.not_found.ru);
  t.is(new AppError('not_found', { message: texts.message }).publicMessageRu, null);
});
