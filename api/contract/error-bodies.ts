import Type from 'typebox';
import { errorKinds, type ErrorCode } from '../../shared/contract/error-kinds.ts';
import { errorKind } from '../../shared/contract/errors.ts';
import { Nullable, StringEnum } from '../../shared/contract/fields.ts';
import type { ErrorText } from '../../shared/contract/web-errors.ts';

const errorTypes = [...new Set(Object.values(errorKinds).map((kind) => kind.type))];

const ErrorSummary = Type.Object(
  {
    message: Type.String({ description: 'What is wrong, where, and what to do, in English.' }),
    type: StringEnum(errorTypes, { description: 'The error type, as in OpenAI’s API.' }),
    param: Nullable(
      Type.String({ description: 'The field that caused the error, such as `messages.0.role`.' }),
    ),
    code: Type.String({ description: 'The error code. Use it to handle errors in your program.' }),
  },
  { description: 'The error in OpenAI’s format.' },
);

/** The body of every error except a 422. */
export const ErrorBody = Type.Object(
  {
    error: ErrorSummary,
    detail: Type.Object({
      error: Type.String({ description: 'The same as `error.code`.' }),
      message_ru: Type.String({
        description:
          'The message in Russian. Where there is no translation, the meaning of the code in Russian, followed by `message_en`.',
      }),
      message_en: Type.String({ description: 'The same as `error.message`.' }),
    }),
  },
  { title: 'Error' },
);

const issueFields = {
  loc: Type.Array(Type.Unsafe<string | number>({ type: ['string', 'integer'] }), {
    description: 'The path to the invalid field, such as `["body", "messages", 0, "role"]`.',
  }),
  msg: Type.String({ description: 'What is wrong with the field.' }),
  type: Type.String({ description: 'The validation rule that the field violates.' }),
};

const issueList = {
  description:
    'The invalid fields. The list may be incomplete: for some bodies, only the first error is reported.',
};

/** The body of a 422, with one item per invalid field. */
export const ValidationErrorBody = Type.Object(
  { error: ErrorSummary, detail: Type.Array(Type.Object(issueFields), issueList) },
  { title: 'ValidationError' },
);

/** The same with Russian text, for requests that users fill in on a page. */
export const TranslatedValidationErrorBody = Type.Object(
  {
    error: ErrorSummary,
    detail: Type.Array(
      Type.Object({
        ...issueFields,
        message_ru: Type.String({ description: 'What is wrong with the field, in Russian.' }),
        message_en: Type.String({ description: 'The same as `msg`.' }),
      }),
      issueList,
    ),
  },
  { title: 'TranslatedValidationError' },
);

interface ExampleOptions {
  readonly status?: number;
  readonly isTranslated?: boolean;
  readonly text?: ErrorText | undefined;
}

/**
 * Builds an example error of this code as a caller sees it, with the general text.
 * @param loc the location of a 422's invalid field
 * @param options `status` if it differs from the code's status; `isTranslated` to describe invalid fields in Russian as
 * well; `text` to replace the general text
 */
export function createErrorExample(
  code: ErrorCode,
  loc: readonly string[],
  { status: ofStatus, isTranslated = false, text }: ExampleOptions = {},
): object {
  const { status, type, ...general } = errorKind(code, ofStatus);
  const { message: en, messageRu: ru } = text ?? { message: general.en, messageRu: general.ru };
  const texts = { message_ru: ru, message_en: en };
  const param = status === 422 ? loc.slice(1).join('.') || null : (text?.param ?? null);
  return {
    error: { message: en, type, param, code },
    detail:
      status === 422
        ? [{ loc, msg: en, type: code, ...(isTranslated ? texts : {}) }]
        : { error: code, ...texts },
  };
}
