import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundleFolder } from './bundle-folder.mjs';
import { readText, root, say } from './processes.mjs';

const groupFolder = join(root, 'dist', 'test-groups');
const costsPath = join(groupFolder, 'costs.tsv');
const program = pathToFileURL(join(root, 'scripts', 'bootstrap', 'grouped-tests.mjs')).href;

/** How many of the slowest files the summary lists. */
const listedFiles = 10;

/** `// Has its own process: why`, in a test file that no other may precede in its process. */
const hasOwnProcess = /^\/\/ Has its own process: /m;

/** Makes compiled tests import `grouped-tests.mjs` in place of ava. */
export function writeAvaEntry() {
  const folder = join(bundleFolder, 'ava');
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'package.json'),
    '{ "name": "ava", "type": "module", "exports": "./index.js" }\n',
  );
  const lines = [`import { getTest } from ${JSON.stringify(program)};`, 'export default getTest();'];
  writeFileSync(join(folder, 'index.js'), `${lines.join('\n')}\n`);
}

/** Returns the compiled test files in a folder of the project, such as `test/api`, in the order of their names. */
export function listTests(folder) {
  const base = join(root, 'dist', folder);
  if (!existsSync(base)) return [];
  return readdirSync(base, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => join('dist', folder, name))
    .toSorted();
}

const sourceOf = (file) => join(root, relative('dist', file).replace(/\.js$/, '.ts'));
const labelOf = (file) =>
  relative(join('dist', 'test'), file)
    .replace(/\.test\.js$/, '')
    .replaceAll(/[/\\]/g, ' › ');

export function clearGroups() {
  rmSync(groupFolder, { recursive: true, force: true });
  mkdirSync(groupFolder, { recursive: true });
  writeFileSync(costsPath, '');
}

/**
 * Writes a program for each group of test files.
 * @param prefix of the programs' names
 * @param suites lists of compiled test files; no group has files of two of them
 * @param count the number of groups of a suite, besides those of files that have their own process
 * @returns the programs, in the order in which ava should start them
 */
export function writeGroups(prefix, suites, count) {
  const isOwn = (file) => hasOwnProcess.test(readText(sourceOf(file)));
  const own = suites.flat().filter(isOwn);
  // Neighbours in a folder take about as long, so giving them to the groups in turn makes these of about the same length.
  const groups = suites.flatMap((suite) => {
    const files = suite.filter((file) => !isOwn(file));
    return Array.from({ length: count }, (_, i) => files.filter((_file, k) => k % count === i));
  });
  return [...own.map((file) => [file]), ...groups]
    .filter((group) => group.length > 0)
    .map((group, i) => writeGroup(group, `${prefix}-${i + 1}.test.js`));
}

function writeGroup(files, name) {
  const entries = files.map((file) => ({ label: labelOf(file), url: pathToFileURL(join(root, file)).href }));
  const path = join(groupFolder, name);
  const options = { files: entries, costsPath };
  writeFileSync(
    path,
    `import { runGroup } from ${JSON.stringify(program)};\n\nawait runGroup(${JSON.stringify(options, null, 2)});\n`,
  );
  return relative(root, path);
}

const groupName = /\b(?:group|waiting)-\d+ › /g;
/** A test's duration includes the time until it was its file's turn. */
// oxlint-disable-next-line no-control-regex -- colours are control characters
const duration = /^( +[✔√] .*?) (?:\u001B\[\d+m)*\((?:[\d.]+(?:ms|s|m)\s?)+\)(?:\u001B\[\d+m)*$/gm;

/** Removes from ava's output the names of groups and the durations of their tests. */
export const withoutGroups = (text) =>
  text.replaceAll(new RegExp(`^.*${groupName.source}.*$`, 'gm'), (line) =>
    line.replaceAll(groupName, '').replaceAll(duration, '$1'),
  );

/** Prints which files took longest. */
export function printCosts() {
  const lines = readText(costsPath).trim().split('\n');
  const costs = lines.map((line) => line.split('\t')).toSorted(([a], [b]) => Number(b) - Number(a));
  if (costs.length <= listedFiles) return;
  say(`\nThe slowest of ${costs.length} test files, in seconds:`);
  for (const [seconds, label] of costs.slice(0, listedFiles)) say(`${seconds.padStart(7)}  ${label}`);
}
