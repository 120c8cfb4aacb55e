// Lets many test files share a process, and with it the modules that they load: loading the product takes a file longer
// than most tests. The files of a group run one by one. For a test file nothing changes: its hooks run before and after
// its own tests, and its serial tests run one by one, before its others.
//
// Compiled tests import this instead of ava (see `writeAvaEntry`). In a file that is run by itself, it is ava.
import { appendFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import ava from 'ava';

/** The file that is being loaded, or null outside of groups. @type {TestFile | null} */
let loading = null;
let isGroup = false;
/** A Redis that all tests share has room for one test at a time. */
const isSerial = Boolean(process.env.REDIS_URL);

const hookNames = ['before', 'after', 'beforeEach', 'afterEach'];

/** The tests and hooks of one file. */
class TestFile {
  tests = [];
  hooks = { before: [], after: [], beforeEach: [], afterEach: [] };
  context = {};
  #isReady = null;
  #serial = Promise.resolve();
  #unfinished = 0;
  #onEnd = withResolvers();

  constructor(label) {
    this.label = label;
    this.turn = withResolvers();
  }

  get ended() {
    return this.#onEnd.promise;
  }

  /** Adds the tests to ava, which starts all at once. Each waits until it is its file's turn. */
  register() {
    const active = this.tests.filter((test) => !test.isSkipped);
    this.#unfinished = active.length;
    if (active.length === 0) this.#onEnd.resolve();
    for (const test of this.tests) {
      const title = `${this.label} › ${test.title}`;
      if (test.isSkipped) ava.skip(title, test.run);
      else ava(title, this.#wrap(test));
    }
  }

  #wrap(test) {
    const finished = withResolvers();
    const previous = this.#serial;
    if (test.isSerial) this.#serial = finished.promise;
    return async (t) => {
      // What a test tears down is run in reverse order, so this comes last.
      t.teardown(() => this.#finish(t).finally(() => finished.resolve()));
      await this.turn.promise;
      await nextStart();
      await (this.#isReady ??= this.#prepare(t));
      await (test.isSerial ? previous : this.#serial);
      t.context = { ...this.context };
      for (const { run } of this.hooks.beforeEach) await run(t);
      return await test.run(t);
    };
  }

  async #prepare(t) {
    for (const { run } of this.hooks.before) await run(t);
    this.context = t.context;
  }

  /** @param t of the test that has ended */
  async #finish(t) {
    const failures = [];
    const runHooks = async (hooks) => {
      for (const { run } of hooks)
        await Promise.resolve(t)
          .then(run)
          .catch((error) => failures.push(error));
    };
    try {
      await runHooks(this.hooks.afterEach);
      if (--this.#unfinished === 0) await runHooks(this.hooks.after);
      if (failures.length > 0) throw failures[0];
    } finally {
      if (this.#unfinished === 0) this.#onEnd.resolve();
    }
  }
}

let lastStart = Promise.resolve();

/**
 * Lets one test start in each turn of the event loop. Tests that await nothing would otherwise run one after the other
 * while the timers and sockets of the others wait.
 */
async function nextStart() {
  lastStart = lastStart.then(() => nextTurn());
  await lastStart;
}

function withResolvers() {
  let resolve;
  const promise = new Promise((fulfil) => (resolve = fulfil));
  return { promise, resolve };
}

/** Has the functions of ava's `test` that the tests use. */
function createChain(flags) {
  const declare = (title, run, ...args) => {
    if (typeof run !== 'function')
      throw new TypeError(`${loading.label}: a test needs a title and a function`);
    loading.tests.push({ title, run: (t) => run(t, ...args), ...flags });
  };
  for (const name of hookNames) {
    const add = (...args) => {
      const [run, ...rest] = typeof args[0] === 'string' ? args.slice(1) : args;
      loading.hooks[name].push({ run: (t) => run(t, ...rest) });
    };
    declare[name] = Object.assign(add, { always: add });
  }
  return declare;
}

function createGroupedTest() {
  const test = createChain({ isSerial, isSkipped: false });
  test.serial = createChain({ isSerial: true, isSkipped: false });
  test.skip = test.serial.skip = createChain({ isSerial: false, isSkipped: true });
  return test;
}

/** What `import test from 'ava'` is in a compiled test. */
export const getTest = () => (isGroup ? createGroupedTest() : ava);

const throwUncaught = (error) =>
  setImmediate(() => {
    throw error;
  });

/**
 * Loads the files of a group, and then runs their tests, one file after the other.
 * @param options `files`: each with its `label` in titles and the `url` of its module; `costsPath`: the file to which the
 *   seconds of each are appended
 */
export async function runGroup({ files, costsPath }) {
  isGroup = true;
  const loaded = [];
  for (const { label, url } of files) {
    loading = new TestFile(label);
    await import(url);
    loaded.push(loading);
  }
  // ava starts with the first test that it gets, and takes no others once it has started.
  for (const file of loaded) file.register();
  runInTurn(loaded, costsPath).catch(throwUncaught);
}

async function runInTurn(files, costsPath) {
  for (const file of files) {
    const startedMs = performance.now();
    file.turn.resolve();
    await file.ended;
    appendFileSync(costsPath, `${((performance.now() - startedMs) / 1_000).toFixed(1)}\t${file.label}\n`);
  }
}
