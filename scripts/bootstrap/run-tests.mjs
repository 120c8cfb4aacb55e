import { existsSync } from 'node:fs';
import { delimiter, join, relative, resolve } from 'node:path';
import { binOf, root, run, say, showProgress } from './processes.mjs';

/** Load and deaths for minutes, or attacks by the thousand: other tests beside them would be tested for their patience. */
const aloneTests = ['dist/test/crash/random-deaths.test.js', 'dist/test/hostile/all-attacks.test.js'];

/**
 * Lint, format check and tests, or the named test files alone: who names a file is at work on it.
 * The last line on stdout, "N passed, N failed", is for machines; a check that fails counts as a failed test.
 */
export async function runTests(args) {
  const names = args.filter((arg) => !arg.startsWith('-'));
  const flags = args.filter((arg) => arg.startsWith('-'));
  const failedChecks = args.length > 0 ? 0 : await checkStyle();
  const phases = names.length > 0 ? [names.map(toCompiled)] : allTests();
  let passed = 0;
  let failed = failedChecks;
  for (const files of phases) {
    const counts = await runAva([...flags, ...files]);
    passed += counts.passed;
    failed += counts.failed;
  }
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return failed === 0;
}

/** Those that need the machine to themselves come after the others. */
function allTests() {
  const alone = aloneTests.filter((path) => existsSync(join(root, path)));
  const others = ['dist/test/**/*.test.js', ...alone.map((path) => `!${path}`)];
  return [others, ...alone.map((path) => [path])];
}

async function runAva(args) {
  const colour = process.stdout.isTTY ? ['--color'] : [];
  const ava = [binOf('ava'), '--timeout=120s', ...colour, ...args];
  const onOutput = (chunk, stream) => process[stream].write(chunk);
  const { code, output } = await run(process.execPath, ava, { onOutput });
  return countTests(output, code);
}

/** Checks what a build does not: both at once, and both tell all they found. */
async function checkStyle() {
  const path = `${join(root, 'node_modules', '.bin')}${delimiter}${process.env.PATH ?? ''}`;
  const checks = [
    ['lint', binOf('oxlint'), '--type-aware', '--deny-warnings'],
    ['format check', binOf('prettier'), '--check', '--log-level=warn', '.'],
  ];
  const check = async ([name, ...args]) => {
    const { code, output } = await run(process.execPath, args, { env: { ...process.env, PATH: path } });
    return code === 0 ? [] : [{ name, output }];
  };
  const failures = (
    await showProgress('Checking lint and format', () => Promise.all(checks.map(check)))
  ).flat();
  for (const { name, output } of failures) say(`\n${output.trimEnd()}\n\nThe ${name} failed.\n`);
  return failures.length;
}

/** A source's name, as people type it, becomes that of what was compiled from it. */
function toCompiled(name) {
  const path = relative(root, resolve(root, name));
  return (path.startsWith('dist') ? path : join('dist', path)).replace(/\.ts$/, '.js');
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
  return { passed, failed: code === 0 ? 0 : Math.max(count(failures), 1) };
}
