import { join, relative, resolve } from 'node:path';
import { binOf, root, run, say } from './processes.mjs';

/** Test files at once; package.json says the same to those who run ava themselves. */
const shared = ['--timeout=120s'];
/** The keys of a Redis have fixed names: tests that share one would find one another's. */
const oneByOne = ['--serial', '--concurrency=1'];
/** In characters. */
const maxReasonLength = 8_000;

/** @returns how many tests passed and failed, which failed and why; all that ava says is passed on as it comes */
export async function runAva(args, env = process.env) {
  const colour = process.stdout.isTTY ? ['--color'] : [];
  const pace = env.REDIS_URL ? oneByOne : [];
  const ava = [
    join(root, 'scripts', 'bootstrap', 'ava-program.mjs'),
    binOf('ava'),
    ...shared,
    ...colour,
    ...pace,
    ...args,
  ];
  const onOutput = (chunk, stream) => process[stream].write(chunk);
  const { code, output } = await run(process.execPath, ava, { env, onOutput });
  return countTests(output, code);
}

/** A source's name, as people type it, becomes that of what was compiled from it. */
export function toCompiled(name) {
  const path = relative(root, resolve(root, name));
  return (path.startsWith('dist') ? path : join('dist', path)).replace(/\.ts$/, '.js');
}

export const noCounts = {
  passed: 0,
  failed: 0,
  failures: /** @type {string[]} */ ([]),
  reasons: /** @type {string[]} */ ([]),
};

export const addCounts = (a, b) => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  failures: [...a.failures, ...b.failures],
  reasons: [...a.reasons, ...b.reasons],
});

/** Says which tests failed and why, once more: tests that ran after them have pushed it out of sight. */
export function sayFailures({ failures, reasons }) {
  for (const reason of reasons) say(`\n${reason}\n`);
  for (const title of failures) say(`Failed: ${title}`);
}

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
    reasons: code === 0 ? [] : [reasonsIn(text)],
  };
}

/** What ava prints of failed tests between two rules at its end, as far as a person would read it. */
function reasonsIn(text) {
  const [, reasons = ''] = text.split(/\n {2}─\n/);
  return reasons.trim().slice(0, maxReasonLength);
}
