import { findCollector, measureHeapBytes } from '../../shared/platform/runtime/idle-collection.ts';
import { readRssMb } from '../../scripts/bench/harness/clocks/rss-clock.ts';
import { loadConfig } from '../../shared/platform/config/config.ts';
import { runProcess } from '../../shared/platform/runtime/lifecycle.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { startApi } from '../../api/server.ts';
import { startWorker } from '../../workers/worker.ts';
import { allQueues } from '../support/stack.ts';

/**
 * `node attacked-role.js api|worker`: runs the role with shorter timeouts for callers, so that tests are short. On
 * SIGUSR2 it collects all garbage and logs the remaining memory.
 */

const role = process.argv[2] === 'api' ? 'api' : 'worker';
const bytesPerMb = 1_048_576;
const waitLimits = { maxStallMs: 4_000, bodyTimes: { smallMs: 4_000, stallMs: 4_000, graceMs: 1_000 } };

await runProcess(role, async () => {
  const config = loadConfig(process.env);
  const log = createLogger(role, config.logLevel);
  const collect = findCollector();
  process.on('SIGUSR2', () => {
    collect();
    log.info({ heldMb: measureHeapBytes() / bytesPerMb, rssMb: readRssMb(process.pid) }, 'garbage collected');
  });
  const running =
    role === 'api'
      ? await startApi(config, process.env, log, waitLimits)
      : await startWorker(config, process.env, log, allQueues);
  return { running, log };
});
