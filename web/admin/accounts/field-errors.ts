import { ApiError } from '../../lib/api-error.ts';
import { useFormat } from '../../lib/format.ts';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import type texts from './texts.en.ts';
import type { Problem } from './account-draft.ts';

export interface FieldErrors<Name extends string> {
  /** What is to be said beside a field; null if nothing. */
  readonly of: (name: Name) => string | null;
  /** An error of the API that is about none of the fields; null if there is none. */
  readonly rest: unknown;
}

/** A field of the API's error, such as `budget.amount` or `addresses.3`, belongs to one of a form. */
const isAbout = (field: string, name: string): boolean => field === name || field.startsWith(`${name}.`);

function useProblemText(): (problem: Problem) => string {
  const t = useMessages<typeof texts>();
  const format = useFormat();
  return (problem) =>
    problem.text === 'wrongCount'
      ? t('wrongCount', { min: format.number(problem.min), max: format.number(problem.max) })
      : t(problem.text);
}

/**
 * Says what is wrong with the fields of a form: what the page has found, or what the API has.
 * @param names of the fields, as the API names them
 * @param error of the last call; null once something was changed
 */
export function useFieldErrors<Name extends string>(
  names: readonly Name[],
  problems: { readonly [N in Name]?: Problem },
  error: unknown,
): FieldErrors<Name> {
  const language = useLanguage();
  const describe = useProblemText();
  const issues = error instanceof ApiError ? error.issues : [];
  const isShown = issues.some(({ field }) => names.some((name) => isAbout(field, name)));
  return {
    of: (name) => {
      const problem = problems[name];
      if (problem !== undefined) return describe(problem);
      return issues.find(({ field }) => isAbout(field, name))?.text[language] ?? null;
    },
    rest: isShown ? null : error,
  };
}
