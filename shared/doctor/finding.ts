import { AppError } from '../contract/errors.ts';
import { within } from '../platform/runtime/within.ts';

/**
 * - `ok`
 * - `warning`: it works, but should be changed
 * - `problem`: requests, money or data are lost until it is changed
 */
export const findingStatuses = ['ok', 'warning', 'problem'] as const;
export type FindingStatus = (typeof findingStatuses)[number];

/** What the doctor found about one thing. */
export interface Finding {
  readonly check: string;
  readonly status: FindingStatus;
  readonly found: string;
  /** What to do. Null if there is nothing to do. */
  readonly advice: string | null;
}

/** What the doctor found, and when. */
export interface DoctorReport {
  readonly at: string;
  readonly findings: readonly Finding[];
}

/** @param run finds it */
export async function reportFindings(run: () => Promise<readonly Finding[]>): Promise<DoctorReport> {
  const findings = await run();
  return { at: new Date().toISOString(), findings };
}

/** A check that takes longer has failed. */
const checkMs = 10_000;

export const ok = (check: string, found: string): Finding => ({ check, status: 'ok', found, advice: null });

export const warning = (check: string, found: string, advice: string): Finding => ({
  check,
  status: 'warning',
  found,
  advice,
});

export const problem = (check: string, found: string, advice: string): Finding => ({
  check,
  status: 'problem',
  found,
  advice,
});

/** Runs a check. One that fails, or takes too long, has found a problem: what it checks cannot be used. */
export async function runCheck(
  check: string,
  advice: string,
  run: (signal: AbortSignal) => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const failed = (reason: string): readonly Finding[] => [problem(check, reason, advice)];
  try {
    return await within(checkMs, run(AbortSignal.timeout(checkMs)), () =>
      failed(`no reply within ${checkMs / 1_000} s`),
    );
  } catch (error) {
    return failed(explain(error));
  }
}

/** The message of the innermost error, which names the reason; those around it say what was tried. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error && error instanceof AppError) return explain(error.cause);
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return first === undefined ? error.message || error.name : explain(first);
}
