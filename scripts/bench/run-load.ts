import { dist } from '../start/paths.ts';
import type { LoadMessage, LoadPlan, LoadResult } from './load-plan.ts';
import type { Programs } from './programs.ts';

/** Called with the number of responses so far and the load process's id. */
export type OnProgress = (answers: number, loadPid: number) => void;

/** Runs a plan in a separate process. If that exits without a result, `programs.failed` rejects. */
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
    kind: 'ipc',
  });
  const result = new Promise<LoadResult>((resolve) => {
    child.on('message', (message: LoadMessage) => {
      if (message.kind === 'progress') onProgress(message.answers, pid);
      else resolve(message.result);
    });
  });
  child.send(plan);
  const loadResult = await result;
  await ended;
  return loadResult;
}
