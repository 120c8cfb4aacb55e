import test from 'ava';
import Type from 'typebox';
import { presentError } from '../../../shared/responses/error-body.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { compileValidator } from '../../../shared/contract/validation.ts';

const validate = compileValidator(
  Type.Object({
    name: Type.String({ minLength: 2, maxLength: 21 }),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })),
    kind: Type.Optional(StringEnum(['login', 'signup'])),
    items: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 5 })),
    note: Type.Optional(Nullable(Type.String())),
    day: Type.Optional(Type.String({ format: 'date' })),
  }),
  'body',
);

function refusalOf(value: unknown): AppError {
  try {
    validate(value);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('the value was accepted');
}

const russianOf = (value: unknown): string | undefined => refusalOf(value).issues[0]?.msgRu;

test('a validation error is described in Russian as well', (t) => {
  t.is(russianOf(null), 'Тело должно быть объектом JSON.');
  t.is(russianOf({}), 'обязательное поле');
  t.is(russianOf({ name: 'a' }), 'должно содержать не менее 2 символов');
  t.is(russianOf({ name: 'a'.repeat(22) }), 'должно содержать не более 21 символа');
  t.is(russianOf({ name: 7 }), 'должно иметь тип: строка');
  t.is(russianOf({ name: 'ab', count: 0 }), 'должно быть >= 1');
  t.is(russianOf({ name: 'ab', kind: 'boss' }), 'допустимые значения: login, signup');
  t.is(russianOf({ name: 'ab', items: [] }), 'не должно быть пустым');
  t.is(russianOf({ name: 'ab', items: Array(6).fill('') }), 'должно содержать не более 5 элементов');
  t.is(russianOf({ name: 'ab', note: 7 }), 'должно иметь тип: строка или null');
  t.is(russianOf({ name: 'ab', day: '2026-02-30' }), 'должно быть существующей датой в формате ГГГГ-ММ-ДД');
});

test('a 422 reports in both languages the location of its first error and the number of further ones', (t) => {
  const error = refusalOf({ name: 'a', count: 0, kind: 'boss' });
  t.is(error.publicMessage, 'name: must have at least 2 characters (and 2 more)');
  t.is(error.publicMessageRu, 'name: должно содержать не менее 2 символов (и ещё 2)');
});

test('each error of an account area 422 has its message in Russian and in English', (t) => {
  t.deepEqual(
    (presentError(refusalOf({ name: 'a' }), { translatesErrors: true }) as { detail: unknown }).detail,
    [
      {
        loc: ['body', 'name'],
        msg: 'must have at least 2 characters',
        type: 'minLength',
        message_ru: 'должно содержать не менее 2 символов',
        message_en: 'must have at least 2 characters',
      },
    ],
  );
});

test('an error without its own Russian text uses the Russian text of its code', (t) => {
  const error = new AppError('validation_failed', {
    message: 'x: is odd',
    issues: [{ loc: ['body', 'x'], msg: 'is odd', type: 'value_error' }],
  });
  const { detail } = presentError(error, { translatesErrors: true }) as { detail: { message_ru: string }[] };
  t.regex(detail[0]!.message_ru, /^Запрос не прошёл проверку\..*is odd$/);
});
