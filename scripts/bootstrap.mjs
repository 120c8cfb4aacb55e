#!/usr/bin/env node
// Runs on plain Node before anything is installed, so it is JavaScript without dependencies. Installs and builds what
// is missing, then runs the command in the same process.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findBrowser, installBrowser } from './bootstrap/browser-program.mjs';
import { build, isBuilt } from './bootstrap/build.mjs';
import { withLock } from './bootstrap/lock.mjs';
import { fetchMongod } from './bootstrap/mongod-program.mjs';
import { installPackages, isInstalled } from './bootstrap/packages.mjs';
import { SetupError, root, say, signalPrograms } from './bootstrap/processes.mjs';
import { fetchPrometheus, findPrometheus } from './bootstrap/prometheus-program.mjs';
import { hasRedis, installRedis } from './bootstrap/redis-program.mjs';
import { runRealTests } from './bootstrap/run-real-tests.mjs';
import { runTests } from './bootstrap/run-tests.mjs';

/** The file in dist/ that each command runs. The tests are run from here. */
const entries = {
  start: 'scripts/start/main',
  test: null,
  'test:real': null,
  api: 'api/main',
  worker: 'workers/main',
  admin: 'scripts/admin/main',
  bench: 'scripts/bench/main',
  'simulate-vendor': 'scripts/vendor-simulator/main',
  example: 'examples/main',
};

const testRunners = { test: runTests, 'test:real': runRealTests };
const needRedis = ['start', 'bench', ...Object.keys(testRunners)];

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new SetupError(`model-gateway needs Node 20.19 or later; this is Node ${process.versions.node}.`);
}

/** Several api processes on one port are started by a program of their own. */
const entryOf = (command, args) =>
  command === 'api' && args.length > 0 ? 'scripts/start/api-processes' : entries[command];

async function prepare(command) {
  const isTest = Object.hasOwn(testRunners, command);
  const project = isTest ? 'all' : 'product';
  const steps = [
    { isDone: isInstalled, work: installPackages },
    { isDone: () => !needRedis.includes(command) || hasRedis(), work: installRedis },
    { isDone: () => !isTest || findBrowser() !== null, work: installBrowser },
    { isDone: () => !isTest || findPrometheus() !== null, work: fetchPrometheus },
    { isDone: () => isBuilt(project), work: () => build(project) },
  ];
  if (steps.every((step) => step.isDone())) return;
  await withLock(async () => {
    // Check again, because the previous holder of the lock may have done these steps.
    for (const step of steps) if (!step.isDone()) await step.work();
  });
}

const exitOnSignal = (signal) => {
  signalPrograms(signal);
  process.exit(signal === 'SIGINT' ? 130 : 143);
};

async function main([command, ...args]) {
  if (!Object.hasOwn(entries, command ?? '')) {
    throw new SetupError(`Usage: node scripts/bootstrap.mjs ${Object.keys(entries).join('|')} [arguments]`);
  }
  checkNode();
  process.chdir(root);
  process.on('SIGINT', exitOnSignal).on('SIGTERM', exitOnSignal);
  await prepare(command);
  if (command === 'bench' && args.includes('requests')) {
    const { path, reason } = await fetchMongod();
    if (path === null) say(reason);
    else process.env.TEST_MONGOD_BIN = path;
  }
  const runTestCommand = testRunners[command];
  if (runTestCommand !== undefined) {
    process.exitCode = (await runTestCommand(args)) ? 0 : 1;
    return;
  }
  const name = entryOf(command, args);
  const entry = join(root, 'dist', `${name}.js`);
  if (!existsSync(entry)) throw new SetupError(`${name}.ts, which "${command}" runs, does not exist.`);
  // Deliver signals that arrived during the checks while their handlers are still installed.
  await new Promise(setImmediate);
  // From here on, the command handles signals, and finds its arguments where it expects them.
  process.off('SIGINT', exitOnSignal).off('SIGTERM', exitOnSignal);
  process.setSourceMapsEnabled(true);
  process.argv = [process.argv[0], entry, ...args];
  await import(pathToFileURL(entry).href);
}

const command = process.argv[2];
main(process.argv.slice(2)).catch((error) => {
  say(error instanceof SetupError ? error.message : (error.stack ?? String(error)));
  // A failed build is a test failure, too. Report it for readers of the last line.
  if (Object.hasOwn(testRunners, command ?? '')) process.stdout.write('0 passed, 1 failed\n');
  process.exit(1);
});
