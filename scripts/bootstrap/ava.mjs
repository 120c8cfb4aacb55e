import { join, relative, resolve } from 'node:path';
import { binOf, root, run, say } from './processes.mjs';
import { withoutGroups } from './test-groups.mjs';

/** The same options as in package.json, which apply if ava is run directly. */
const commonOptions = ['--timeout=120s'];
/** Redis keys have fixed names, so concurrent tests that share a Redis would find each other's keys. */
const serialOptions = ['--serial', '--concurrency=1'];
/** Longer than any test. ava gives up much earlier, unless one of its threads cannot be stopped. */
const silenceMs = 600_000;
/** In characters. */
const maxReasonLength = 8_000;

/** Runs ava and passes its output on. @returns how many tests passed and failed, which ones failed, and why */
export async function runAva(args, env = process.env) {
  const colorOptions = process.stdout.isTTY ? ['--color'] : [];
  const concurrencyOptions = env.REDIS_URL ? serialOptions : [];
  const ava = [
    join(root, 'scripts', 'bootstrap', 'ava-program.mjs'),
    binOf('ava'),
    ...commonOptions,
    ...colorOptions,
    ...args,
    // If ava gets an option twice, it uses the last one.
    ...concurrencyOptions,
  ];
  const lines = { stdout: '', stderr: '' };
  const onOutput = (chunk, stream) => {
    const end = chunk.lastIndexOf('\n') + 1;
    process[stream].write(withoutGroups(lines[stream] + chunk.slice(0, end)));
    lines[stream] = (end === 0 ? lines[stream] : '') + chunk.slice(end);
  };
  const { code, output } = await run(process.execPath, ava, { env, onOutput, silenceMs });
  return countTests(withoutGroups(output), code);
}

/** Converts the path of a source file, as typed by a user, to that of its compiled file. */
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

/** Prints again which tests failed and why, because the output of later tests has scrolled ava's report out of view. */
export function printFailures({ failures, reasons }) {
  for (const reason of reasons) say(`\n${reason}\n`);
  for (const title of failures) say(`Failed: ${title}`);
}

/** Counts tests from ava's output. Its summary gives the number of passed tests only if none failed. */
function countTests(output, code) {
  // oxlint-disable-next-line no-control-regex -- colours are control characters
  const text = output.replace(/\u001B\[[0-9;]*m/g, '');
  const count = (pattern) => [...text.matchAll(pattern)].reduce((sum, match) => sum + Number(match[1]), 0);
  const ticks = [...text.matchAll(/^ +[✔√] /gm)].length;
  const passed = count(/^ +(\d+) tests? passed/gm) || ticks;
  const failures =
    /^ +(\d+) (?:(?:tests?|hooks?) failed|uncaught exceptions?|unhandled rejections?|tests? remained pending)/gm;
  // These lines do not include a test file that does not load.
  const titles = [...text.matchAll(/^ +[✘✖×] (?:\[fail\]: )?(.+)$/gm)].map(([, title]) => title);
  return {
    passed,
    failed: code === 0 ? 0 : Math.max(count(failures), 1),
    failures: code === 0 ? [] : titles,
    reasons: code === 0 ? [] : [extractReasons(text)],
  };
}

/** Returns what ava prints about failed tests between two horizontal rules, shortened to a readable length. */
function extractReasons(text) {
  const [, reasons = ''] = text.split(/\n {2}─\n/);
  return reasons.trim().slice(0, maxReasonLength);
}
