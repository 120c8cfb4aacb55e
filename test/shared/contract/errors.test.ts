import test from 'ava';
import { httpStatusErrors } from '../../../shared/contract/http-status-errors.ts';
import { errorKinds, type ErrorCode } from '../../../shared/contract/error-kinds.ts';
import { AppError, cancelledJobStatus } from '../../../shared/contract/errors.ts';

/** A sentence or clause that instructs the caller to do something, or where to look. */
const instructions = {
  en: /(?:^|[.:] )(?:Ask|Change|Check|Choose|Correct|Refill|Refresh|Send|Shorten|Sign in|Try|Use|Wait|try)[ ,;]|\blists\b/,
  ru: /(?:^|[.:] )(?:Войдите|Выберите|Дождитесь|Запросите|Измените|Исправьте|Используйте|Обновите|Обратитесь|Отправ(?:ьте|ляйте)|Переда(?:йте|вайте)|Повторите|Пополните|Попробуйте|Проверьте|Сократите|Укажите|повторите)[ ,;]|Причину |Список |Допустимые /,
};

test('every text of the table says what to do', (t) => {
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

test('an error whose status differs from that of its code has the text of that status', (t) => {
  const late = new AppError('deadline_exceeded', { status: 408 });
  t.is(late.message, httpStatusErrors[408]!.en);
  t.like(late.kind, { type: 'invalid_request_error', ru: httpStatusErrors[408]!.ru, status: 408 });
  t.like(new AppError('deadline_exceeded').kind, errorKinds.deadline_exceeded);
  const cancelled = new AppError('job_cancelled', { status: cancelledJobStatus });
  t.like(cancelled.kind, { status: 409, en: httpStatusErrors[409]!.en });
  t.is(new AppError('idempotency_conflict').message, errorKinds.idempotency_conflict.en);
});

test('a text meant only for the log is shown to callers only if the error says so', (t) => {
  const message = 'the ledger stream is at its bound';
  t.is(new AppError('service_unavailable', { message }).publicMessage, errorKinds.service_unavailable.en);
  t.is(new AppError('service_unavailable', { message, expose: true }).publicMessage, message);
  t.is(new AppError('not_found', { message }).publicMessage, message);
});

test("an error's Russian text is shown where its English text is, otherwise the text of its code", (t) => {
  const texts = { message: 'There is no session 1.', messageRu: 'Сессии 1 нет.' };
  t.is(new AppError('not_found', texts).publicMessageRu, texts.messageRu);
  t.is(new AppError('service_unavailable', texts).publicMessageRu, errorKinds.service_unavailable.ru);
  t.is(new AppError('not_found').publicMessageRu, errorKinds.not_found.ru);
  t.is(new AppError('not_found', { message: texts.message }).publicMessageRu, null);
});
