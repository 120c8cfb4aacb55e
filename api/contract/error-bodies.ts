import Type from 'typebox';
import { errorKinds, type ErrorCode } from '../../shared/contract/error-kinds.ts';
import { errorKind } from '../../shared/contract/errors.ts';
import { Nullable, StringEnum } from '../../shared/contract/fields.ts';
import type { ErrorText } from '../../shared/contract/web-errors.ts';

const errorTypes = [...new Set(Object.values(errorKinds).map((kind) => kind.type))];

const ErrorSummary = Type.Object(
  {
    message: Type.String({ description: 'What was wrong, where, and what to do; in English.' }),
    type: StringEnum(errorTypes, { description: 'OpenAI’s word for the kind of error.' }),
    param: Nullable(Type.String({ description: 'The field that is at fault, such as `messages.0.role`.' })),
    code: Type.String({ description: 'What programs tell errors apart by.' }),
  },
  { description: 'The form that OpenAI’s clients read.' },
);

/** The body of every error except a 422. */
export const ErrorBody = Type.Object(
  {
    error: ErrorSummary,
    detail: Type.Object({
      error: Type.String({ description: 'The same as `error.code`.' }),
      message_ru: Type.String({
        description: 'What the code means, in Russian, and behind it `message_en` where that says more.',
      }),
      message_en: Type.String({ description: 'The same as `error.message`.' }),
    }),
  },
  { title: 'Error' },
);

const issueFields = {
  loc: Type.Array(Type.Unsafe<string | number>({ type: ['string', 'integer'] }), {
    description: 'The way to the fault, such as `["body", "messages", 0, "role"]`.',
  }),
  msg: Type.String({ description: 'What is wrong there.' }),
  type: Type.String({ description: 'Which rule it breaks.' }),
};

const issueList = {
  description: 'Not all faults are always listed: a broken body may show the first alone.',
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
        message_ru: Type.String({ description: 'What is wrong there, in Russian.' }),
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
