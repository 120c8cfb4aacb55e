import { findIllness } from './upkeep/health-file.ts';

/**
 * `node dist/workers/health.js <file>`: exits 0 if the worker that was started with `--health-file <file>` is alive and
 * Redis knows it; otherwise says why not and exits 1. It runs every few seconds beside each worker, so it loads no package.
 */
const [path, ...rest] = process.argv.slice(2);
const illness =
  path === undefined || rest.length > 0
    ? 'Usage: node dist/workers/health.js <the --health-file of the worker>'
    : await findIllness(path);
if (illness !== null) {
  process.stderr.write(`${illness}\n`);
  process.exitCode = 1;
}
