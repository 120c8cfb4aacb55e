import type { AdminDeps } from '../../shared/admin/admin-deps.ts';
import type { AuditTrail } from '../../shared/admin/audit-trail.ts';
import { maxReasonLength } from '../../shared/contract/admin-terms.ts';
import { isPlainText } from '../../shared/contract/plain-text.ts';
import { parseRub } from '../../shared/encoding/money.ts';

/** The input of a verb: the connected stores and the parsed command line. */
export interface AdminContext extends AdminDeps {
  readonly env: NodeJS.ProcessEnv;
  readonly positionals: readonly string[];
  readonly options: Readonly<Record<string, string>>;
  readonly flags: ReadonlySet<string>;
  /** Prints a warning for a command that succeeded anyway: it exits 0. */
  readonly warn: (text: string) => void;
}

/** The input of a verb that changes something. */
export interface ChangeContext extends AdminContext {
  /** Records the changes that the command makes, with the operator's reason. */
  readonly trail: AuditTrail;
}

/** A result that is printed as it is, with or without `--json`. */
export class PlainText {
  readonly lines: AsyncIterable<string>;

  constructor(lines: AsyncIterable<string>) {
    this.lines = lines;
  }
}

interface VerbUsage {
  /** Arguments after the verb, for the usage text. */
  readonly usage: string;
  /** Description for the usage text. */
  readonly help: string;
  readonly positionals: number;
  /** Further arguments that may be left out; none by default. */
  readonly optionalPositionals?: number;
  /** Options with a value. */
  readonly options: readonly string[];
  /** Options without a value. */
  readonly flags?: readonly string[];
  /** The fields that the table shows; all by default. `--json` always shows all. */
  readonly columns?: readonly string[];
}

/**
 * @returns what `--json` prints. An AsyncIterable, for potentially many rows, is printed as it is read; so is PlainText.
 * @throws CommandError, AppError
 */
type Run<Context> = (context: Context) => Promise<unknown>;

/** A verb that only reads. */
interface ReadVerb extends VerbUsage {
  readonly run: Run<AdminContext>;
  readonly isChange?: false;
}

/** A verb whose changes are in the audit log. It also takes `--reason`. */
interface ChangeVerb extends VerbUsage {
  readonly run: Run<ChangeContext>;
  readonly isChange: true;
}

export type AdminVerb = ReadVerb | ChangeVerb;

/** A verb that must also work if the stores, or the configuration, do not. */
export interface StorelessVerb extends VerbUsage {
  readonly isChange?: boolean;
  /** @returns what `--json` prints. @throws CommandError, FoundProblems */
  readonly runWithoutStores: (
    context: Pick<AdminContext, 'env' | 'flags' | 'options' | 'warn'>,
  ) => Promise<unknown>;
}

/** The command line is wrong: exit 2, with the usage of the verb, or of the resource if the verb is unknown. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The command is valid but cannot be carried out: exit 1, with the reason. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** A check found something wrong: its result is printed as usual, and the command exits 1. */
export class FoundProblems extends Error {
  override readonly name = 'FoundProblems';
  readonly result: unknown;

  constructor(result: unknown) {
    super('There are problems.');
    this.result = result;
  }
}

export function readMoney(
  options: Readonly<Record<string, string>>,
  name: string,
  defaultValue: string,
): bigint {
  const nano = parseRub(options[name] ?? defaultValue);
  if (nano === null)
    throw new UsageError(`--${name} must be an amount of roubles with at most nine decimals, such as 12.5.`);
  return nano;
}

/** Reads why the operator changes something; null if nothing was given. @throws UsageError */
export function readReason({ reason = '' }: Readonly<Record<string, string>>): string | null {
  if (reason === '') return null;
  if (reason.length > maxReasonLength)
    throw new UsageError(`--reason must have at most ${maxReasonLength} characters.`);
  if (!isPlainText(reason))
    throw new UsageError(
      '--reason must be one line with a visible character and without control characters.',
    );
  return reason;
}

export function readInteger(
  options: Readonly<Record<string, string>>,
  name: string,
  defaultValue: number,
  minimum: number,
  maximum = 1_000_000_000,
): number {
  const value = Number(options[name] ?? defaultValue);
  if (!Number.isInteger(value) || value < minimum || value > maximum) {
    throw new UsageError(`--${name} must be a whole number from ${minimum} to ${maximum}.`);
  }
  return value;
}
