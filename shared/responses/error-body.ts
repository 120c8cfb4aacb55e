import type { AppError, ValidationIssue } from '../contract/errors.ts';
import { translateReason } from '../contract/reason-texts.ts';
import { adviseOnCharge } from './possible-charge.ts';

export interface PresentErrorOptions {
  /** Whether to add Russian texts to the issues of a 422, for people to read. */
  readonly translatesErrors?: boolean | undefined;
  /** Whether the request has an Idempotency-Key. */
  readonly hasKey?: boolean;
}

/** The body of an error, used in responses, as the last event of a stream and as the outcome of a line of a file. */
export function presentError(
  error: AppError,
  { translatesErrors = false, hasKey = false }: PresentErrorOptions = {},
): object {
  const { publicMessage, publicMessageRu, possiblyChargedId } = error;
  const advice = possiblyChargedId === null ? null : adviseOnCharge(possiblyChargedId, hasKey);
  const message = advice === null ? publicMessage : `${publicMessage} ${advice.en}`;
  return {
    error: {
      message,
      type: error.kind.type,
      param: error.param,
      code: error.code,
    },
    detail:
      error.status === 422
        ? issuesOf(error).map((issue) => presentIssue(error, issue, translatesErrors))
        : {
            error: error.code,
            message_ru: [toRussian(error, publicMessage, publicMessageRu), advice?.ru].join(' ').trimEnd(),
            message_en: message,
          },
  };
}

function issuesOf({ issues, publicMessage, publicMessageRu, code }: AppError): readonly ValidationIssue[] {
  if (issues.length > 0) return issues;
  const russian = publicMessageRu === null ? {} : { msgRu: publicMessageRu };
  return [{ loc: ['body'], msg: publicMessage, ...russian, type: code }];
}

function presentIssue(
  error: AppError,
  { loc, msg, msgRu, type }: ValidationIssue,
  isTranslated: boolean,
): object {
  return { loc, msg, type, ...(isTranslated ? inBothLanguages(error, msg, msgRu) : {}) };
}

/** Returns a text in both languages. A text without a translation is appended to the Russian text of its error code. */
const inBothLanguages = (error: AppError, english: string, russian: string | null | undefined) => ({
  message_ru: toRussian(error, english, russian),
  message_en: english,
});

const toRussian = ({ kind }: AppError, english: string, russian: string | null | undefined): string =>
  russian ?? translateReason(english) ?? `${kind.ru} Подробнее (по-английски): ${english}`;
