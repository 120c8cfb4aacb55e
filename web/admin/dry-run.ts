interface DryRun {
  readonly dry_run: true;
  readonly effects: object;
}

/** The numbers of a response with `dry_run=true`. */
type EffectsOf<Result> = Extract<Result, DryRun>['effects'];

const isDryRun = (result: unknown): result is DryRun =>
  typeof result === 'object' && result !== null && 'dry_run' in result && 'effects' in result;

/** Returns what a call with `dry_run=true` would do, in numbers. */
export async function readEffects<Result>(response: Promise<Result>): Promise<EffectsOf<Result>> {
  const result = await response;
  if (!isDryRun(result)) throw new Error('The response is not that of a dry run.');
  return result.effects;
}

/** Returns the result of a call without `dry_run`. */
export async function readDone<Result>(response: Promise<Result>): Promise<Exclude<Result, DryRun>> {
  const result = await response;
  if (isDryRun(result)) throw new Error('The response is that of a dry run.');
  return result as Exclude<Result, DryRun>;
}

/** The reason that an operator gave, as the query of a change takes it; empty without one. */
export interface GivenReason {
  readonly reason?: string;
}

/** Why a change is called: to count what it would do, until the signal is aborted, or to make it. */
export type CallPurpose = AbortSignal | GivenReason;

/** Returns the options of such a call. */
export const toCall = (
  purpose: CallPurpose,
): { readonly query: GivenReason & { readonly dry_run?: true }; readonly signal: AbortSignal | null } =>
  purpose instanceof AbortSignal
    ? { query: { dry_run: true }, signal: purpose }
    : { query: purpose, signal: null };
