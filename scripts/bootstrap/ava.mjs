import { join, relative, resolve } from 'node:path';
import { binOf, root, run } from './processes.mjs';

/** Test files at once; package.json says the same to those who run ava themselves. */
const shared = ['--timeout=120s'];
/** The keys of a Redis have fixed names: tests that share one would find one another's. */
const oneByOne = ['--serial', '--concurrency=1'];

/** @returns how many tests passed and failed, and which failed; all that ava says is passed on as it comes */
export async function runAva(args, env = process.env) {
  const colour = process.stdout.isTTY ? ['--color'] : [];
  const pace = env.REDIS_URL ? oneByOne : [];
  const ava = [binOf('ava'), ...shared, ...colour, ...pace, ...args];
  const onOutput = (chunk, stream) => process[stream].write(chunk);
  const { code, output } = await run(process.execPath, ava, { env, onOutput });
  return countTests(output, code);
}

/** A source's name, as people type it, becomes that of what was compiled from it. */
export function toCompiled(name) {
  const path = relative(root, resolve(root, name));
  return (path.startsWith('dist') ? path : join('dist', path)).replace(/\.ts$/, '.js');
}

export const noCounts = { passed: 0, failed: 0, failures: /** @type {string[]} */ ([]) };

export const addCounts = (a, b) => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  failures: [...a.failures, ...b.failures],
});

/** Counts from ava's own lines; its summary names the passed tests only where none failed. */
function countTests(output, code) {
  // oxlint-disable-next-line no-control-regex -- colours are control characters
  const text = output.replace(/\u001B\[[0-9;]*m/g, '');
  const count = (pattern) => [...text.matchAll(pattern)].reduce((sum, match) => sum + Number(match[1]), 0);
  const ticks = [...text.matchAll(/^ +[✔√] /gm)].length;
  const passed = count(/^ +(\d+) tests? passed/gm) || ticks;
  const failures =
    /^ +(\d+) (?:(?:tests?|hooks?) failed|uncaught exceptions?|unhandled rejections?|tests? remained pending)/gm;
  // A test file that does not even load is in no such line.
  const titles = [...text.matchAll(/^ +[✘✖×] (?:\[fail\]: )?(.+)$/gm)].map(([, title]) => title);
  return {
    passed,
    failed: code === 0 ? 0 : Math.max(count(failures), 1),
    failures: code === 0 ? [] : titles,
  };
}
