import test from 'ava';
import { AppError, errorKinds, type ErrorCode } from '../../../shared/contract/errors.ts';

test('every text says what was wrong, and what to do', (t) => {
  for (const [code, { en, ru }] of Object.entries(errorKinds)) {
    // Some say both in one sentence.
    const says = (text: string): boolean => /[.:—].*\.$/.test(text) || /^(?:Send|Отправьте)/.test(text);
    t.true(says(en), `${code}: ${en}`);
    t.true(says(ru), `${code}: ${ru}`);
    t.regex(ru, /[а-я]/);
  }
});

test('the status of an error is that of its code, unless HTTP has one of its own', (t) => {
  for (const code of Object.keys(errorKinds) as ErrorCode[]) {
    t.is(new AppError(code).status, errorKinds[code].status);
  }
  t.is(new AppError('validation_failed', { status: 400 }).status, 400);
});

test('a text that only the log is for leaves the process where the error says so itself', (t) => {
  const message = 'the ledger stream is at its bound';
  t.is(new AppError('service_unavailable', { message }).publicMessage, errorKinds.service_unavailable.en);
  t.is(new AppError('service_unavailable', { message, expose: true }).publicMessage, message);
  t.is(new AppError('not_found', { message }).publicMessage, message);
});
