// decision 0104
/** What a change would do, in numbers. Reading it changes nothing, and is not in the audit log. */
export interface DryRun<T> {
  readonly dry_run: true;
  /** Whether the numbers are exact for the moment at which they were read. */
  readonly is_exact: boolean;
  readonly effects: T;
}

export const toDryRun = <T extends object>(effects: T, isExact = true): DryRun<T> => ({
  dry_run: true,
  is_exact: isExact,
  effects,
});
