// Runs the linters: oxlint for TypeScript and JavaScript, and luacheck for the Lua scripts, if it is installed.
// Type checks the pages, against the types of the API.
// Usage: node scripts/bootstrap/lint.mjs [--built]
import { delimiter, join } from 'node:path';
import { build, isBuilt } from './build.mjs';
import { hasWeb } from './web.mjs';
import { withLock } from './lock.mjs';
import { assembleLua } from './lua.mjs';
import { binOf, findOnPath, root, run, say } from './processes.mjs';

/** Globals that Redis provides. An undefined global stops a script when that line runs. */
const redisGlobals = ['redis', 'cjson', 'KEYS', 'ARGV'];

const path = `${join(root, 'node_modules', '.bin')}${delimiter}${process.env.PATH ?? ''}`;

async function runLinter(file, args) {
  const onOutput = (chunk, stream) => process[stream].write(chunk);
  const { code } = await run(file, args, { env: { ...process.env, PATH: path }, onOutput });
  return code === 0;
}

/** Checks the assembled files, because a script uses functions of the files that it includes. */
async function lintLua() {
  const luacheck = findOnPath(['luacheck']);
  if (luacheck === null) {
    say('luacheck is not installed (Debian: lua-check), so the Lua scripts are not linted.');
    return true;
  }
  const files = assembleLua();
  // A script does not use everything that it includes, and functions of includes have parameters with the same names.
  const options = ['--std', 'lua51', '--no-max-line-length', '--ignore', '211', '4', '-q'];
  return await runLinter(luacheck, [...options, '--read-globals', ...redisGlobals, '--', ...files]);
}

/** The types of the API come from its description, which is part of the built product. */
async function prepareTypes() {
  if (!hasWeb()) return true;
  if (!process.argv.includes('--built')) {
    await withLock(async () => {
      if (!isBuilt('all') && !isBuilt('product')) await build('product');
    });
  }
  return await runLinter(process.execPath, [join(root, 'scripts', 'bootstrap', 'web-types.mjs')]);
}

const checkTypes = () =>
  hasWeb() ? runLinter(process.execPath, [binOf('typescript'), '-p', join(root, 'web')]) : true;

const hasTypes = await prepareTypes();
const results = await Promise.all([
  hasTypes && checkTypes(),
  runLinter(process.execPath, [binOf('oxlint'), '--type-aware', '--deny-warnings']),
  lintLua(),
]);
process.exitCode = results.every(Boolean) ? 0 : 1;
