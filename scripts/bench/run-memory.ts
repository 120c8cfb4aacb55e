import { measureMemory, type MemoryRun } from './memory.ts';
import { formatMemory } from './memory-report.ts';
import type { Options } from './options.ts';
import type { Progress } from './progress.ts';
import type { Workshop } from './workshop.ts';

const announcedPercent = 10;

/**
 * Measures memory on a separate stack, so that earlier measurements do not affect it. Returns null if it was not
 * requested.
 */
export async function runMemory(
  options: Options,
  workshop: Workshop,
  progress: Progress,
): Promise<MemoryRun | null> {
  if (!options.measuresMemory) return null;
  progress.show('memory, starting Redis, MongoDB, S3, vendors, api and worker');
  const run = await workshop.within(['api', 'worker'], (programs, dir) => {
    let announced = -announcedPercent;
    return measureMemory({
      ...options,
      programs,
      dir,
      onProgress: (completed) => {
        const percent = Math.floor((completed * 100) / announcedPercent) * announcedPercent;
        if (percent === announced) return;
        announced = percent;
        progress.show(`memory, ${percent} % of ${options.inputs} inputs`);
      },
    });
  });
  progress.clear();
  console.log(formatMemory(run));
  return run;
}
