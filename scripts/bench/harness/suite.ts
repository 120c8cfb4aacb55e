import type { Output } from './output.ts';
import type { Programs } from './programs.ts';

/** One thing that a suite measures: a line of `--help`, and what `--only` selects. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** The argument that selects it; by default the name of its suite. */
  readonly group?: string;
}

/** A command-line option that only one suite has: a positive whole number. */
export interface SuiteOption {
  readonly default: number;
  readonly max?: number;
  readonly help: string;
}

/** Options that every suite understands. */
export interface Settings {
  /** Null if each scenario has its own number. */
  readonly callers: number | null;
  readonly measureMs: number;
  readonly warmUpMs: number;
  readonly logLevel: string;
  /** Where api and worker write a CPU profile when they exit, or null. */
  readonly profileDir: string | null;
}

export interface SuiteContext<S extends Scenario = Scenario, O extends string = string> {
  /** The selected scenarios of the suite, in order; at least one. */
  readonly scenarios: readonly S[];
  readonly settings: Settings;
  /** The values of the suite's own options. */
  readonly counts: Readonly<Record<O, number>>;
  readonly rounds: number;
  /** What the suites before this one returned. */
  readonly earlier: readonly SuiteResult[];
  readonly output: Output;
  /**
   * Runs a part of the suite, whose processes and folder are gone when this resolves.
   * @param graceful the programs that are stopped with SIGTERM; by default api and worker
   */
  readonly within: <T>(part: (programs: Programs) => Promise<T>, graceful?: readonly string[]) => Promise<T>;
}

export interface SuiteResult {
  /** For `--json`. */
  readonly json: unknown;
  /** If there are any, the bench fails. */
  readonly faults: number;
  /** What faults of this suite mean; by default that the numbers are meaningless. */
  readonly verdict?: string;
  /** The scenario with the most settlements per second, if the suite measures that. */
  readonly fastest?: FastestScenario;
}

export interface FastestScenario {
  readonly name: string;
  readonly settlementsPerSecond: number;
}

/**
 * A program of the bench. It starts what it measures with `harness/stack`, loads it with `harness/load`, and prints each
 * result as soon as it has it.
 */
export interface Suite<S extends Scenario = Scenario, O extends string = string> {
  /** Also the field of its results in the JSON file. */
  readonly name: string;
  /** What `--help` writes before its titles. */
  readonly label?: string;
  readonly scenarios: readonly S[];
  readonly options?: Readonly<Record<O, SuiteOption>>;
  /** Takes minutes, so it does not run unless it is named. */
  readonly runsOnlyByName?: boolean;
  /** How often each scenario is run without `--rounds`; by default once. */
  readonly defaultRounds?: number;
  /** Its field in the JSON file if none of its scenarios is selected; without this, there is no such field. */
  readonly emptyJson?: unknown;
  run(context: SuiteContext<S, O>): Promise<SuiteResult>;
}

/** Reverses the sides every other turn, so that none always runs on a warmer or busier machine. */
export const alternate = <T>(sides: readonly T[], turn: number): readonly T[] =>
  turn % 2 === 0 ? sides : sides.toReversed();
