import { maxReasonInQuery, maxReasonLength } from '../../shared/contract/admin-terms.ts';
import { hasSecret } from '../../shared/contract/mask-secrets.ts';
import { Field } from '../ui/field.tsx';
import type { GivenReason } from './dry-run.ts';
import { useConsole } from './texts.ts';

/** What is wrong with a reason; null if nothing is. */
export function findReasonProblem(
  reason: string,
  isRequired = false,
): 'reasonMissing' | 'reasonSecret' | null {
  if (isRequired && reason.trim() === '') return 'reasonMissing';
  return hasSecret(reason) ? 'reasonSecret' : null;
}

/** @param text what was typed, which may be blank */
export const toGivenReason = (text: string): GivenReason =>
  text.trim() === '' ? {} : { reason: text.trim() };

/** Why something is changed, for the audit log. */
export function ReasonField({
  value,
  isRequired = false,
  problem,
  onChange,
}: {
  readonly value: string;
  readonly isRequired?: boolean;
  readonly problem: ReturnType<typeof findReasonProblem>;
  readonly onChange: (reason: string) => void;
}) {
  const t = useConsole();
  return (
    <Field
      label={t(isRequired ? 'reason' : 'reasonOptional')}
      hint={t('reasonHint')}
      autoComplete="off"
      maxLength={isRequired ? maxReasonLength : maxReasonInQuery}
      value={value}
      error={problem === null ? null : t(problem)}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}
