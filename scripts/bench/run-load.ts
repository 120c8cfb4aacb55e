import { dist } from '../start/paths.ts';
import type { LoadMessage, LoadPlan, LoadResult } from './load-plan.ts';
import type { Programs } from './programs.ts';

/** Told while a work is under way: how many answers there are, and which process asks. */
export type OnProgress = (answers: number, loadPid: number) => void;

/** Carries out a plan in a process of its own, whose end without a result is a failure of the programs. */
export async function runLoad(
  programs: Programs,
  plan: LoadPlan,
  onProgress: OnProgress = () => undefined,
): Promise<LoadResult> {
  const { child, pid, ended } = programs.start({
    name: 'load',
    file: process.execPath,
    args: [dist('scripts/bench/load-generator.js')],
    env: {},
    kind: 'talks',
  });
  const result = new Promise<LoadResult>((resolve) => {
    child.on('message', (message: LoadMessage) => {
      if (message.kind === 'progress') onProgress(message.answers, pid);
      else resolve(message.result);
    });
  });
  child.send(plan);
  const answer = await result;
  await ended;
  return answer;
}
