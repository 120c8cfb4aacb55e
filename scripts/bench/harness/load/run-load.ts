import { dist } from '../../../start/paths.ts';
import type { Program, Programs } from '../programs.ts';
import type { MoneyCheck, MoneyResult } from '../stack/money-check.ts';
import type { LoadMessage, LoadPlan, LoadResult } from './load-plan.ts';

/** Called with the number of responses so far and the load process's id. */
export type OnProgress = (answers: number, loadPid: number) => void;

export interface RunningLoad {
  readonly program: Program;
  /** If the process exits without a result, `programs.failed` rejects. */
  readonly result: Promise<LoadResult>;
}

/**
 * Starts a plan in a separate process.
 * @param script of the process, in `dist/scripts/bench`
 */
export function startLoad(
  programs: Programs,
  plan: LoadPlan,
  onProgress: OnProgress = () => undefined,
  script = 'harness/load/load-generator.js',
): RunningLoad {
  const args = [dist(`scripts/bench/${script}`)];
  const program = programs.start({ name: 'load', file: process.execPath, args, env: {}, kind: 'ipc' });
  const result = new Promise<LoadResult>((resolve) => {
    program.child.on('message', (message: LoadMessage) => {
      if (message.kind === 'progress') onProgress(message.answers, program.pid);
      else if (message.kind === 'result') resolve(message.result);
    });
  });
  program.child.send(plan);
  return { program, result };
}

/** Runs a plan in a separate process, until that has exited. */
export async function runLoad(
  programs: Programs,
  plan: LoadPlan,
  onProgress?: OnProgress,
): Promise<LoadResult> {
  const { program, result } = startLoad(programs, plan, onProgress);
  const loadResult = await result;
  await program.ended;
  return loadResult;
}

export interface ChargedLoad extends LoadResult {
  readonly money: MoneyResult;
}

/** Runs a plan through the gateway, and checks that each correct response was charged once. */
export async function runChargedLoad(
  programs: Programs,
  money: MoneyCheck,
  plan: LoadPlan,
  onProgress?: OnProgress,
): Promise<ChargedLoad> {
  const startedAt = new Date();
  const load = await runLoad(programs, plan, onProgress);
  return { ...load, money: await money.check(startedAt, load.allAnswers) };
}
