import { findHealthProblem } from './maintenance/health-file.ts';

/**
 * `node dist/workers/health.js <file>`: exits 0 if the worker started with `--health-file <file>` is alive and
 * known to Redis; otherwise prints the reason and exits 1. It runs every few seconds next to each worker, so it
 * loads no package.
 */
const [path, ...rest] = process.argv.slice(2);
const problem =
  path === undefined || rest.length > 0
    ? 'Usage: node dist/workers/health.js <--health-file of the worker>'
    : await findHealthProblem(path);
if (problem !== null) {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 1;
}
