import { ApiError } from '../../lib/api-error.ts';
import { useFormat } from '../../lib/format.ts';
import { useLanguage } from '../../lib/language.tsx';
import { useConsole } from '../texts.ts';
import type { Problem, Problems, Setting } from './account-draft.ts';

export interface FieldErrors {
  /** What is to be said beside a field; null if nothing. */
  readonly of: (setting: Setting) => string | null;
  /** An error of the API that is about none of the fields; null if there is none. */
  readonly rest: unknown;
}

/** A field of the API's error, such as `budget.amount` or `addresses.3`, is about a setting. */
const isAbout = (field: string, setting: string): boolean =>
  field === setting || field.startsWith(`${setting}.`);

export function useProblemText(): (problem: Problem) => string {
  const t = useConsole();
  const format = useFormat();
  return (problem) =>
    problem.text === 'wrongCount'
      ? t('wrongCount', { min: format.number(problem.min), max: format.number(problem.max) })
      : t(problem.text);
}

/**
 * Says what is wrong with the fields of a form: what the page has found, or what the API has.
 * @param settings that have a field
 * @param error of the last call; null while something was changed since
 */
export function useFieldErrors(settings: readonly string[], problems: Problems, error: unknown): FieldErrors {
  const language = useLanguage();
  const describe = useProblemText();
  const issues = error instanceof ApiError ? error.issues : [];
  const isShown = issues.some(({ field }) => settings.some((setting) => isAbout(field, setting)));
  return {
    of: (setting) => {
      const problem = problems[setting];
      if (problem !== undefined) return describe(problem);
      return issues.find(({ field }) => isAbout(field, setting))?.text[language] ?? null;
    },
    rest: isShown ? null : error,
  };
}
