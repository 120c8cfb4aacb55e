import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import test, { type ExecutionContext } from 'ava';

const program = pathToFileURL(resolve('scripts/bootstrap/grouped-tests.mjs')).href;

/** Runs test files as one group, with the real ava. Each writes what it does by calling `note`. */
async function runGroup(
  t: ExecutionContext,
  sources: Readonly<Record<string, string>>,
): Promise<{ code: number | null; output: string; notes: string[]; costs: string }> {
  const dir = mkdtempSync(join(tmpdir(), 'mg-groups-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  symlinkSync(resolve('node_modules'), join(dir, 'node_modules'));
  writeFileSync(join(dir, 'package.json'), '{ "type": "module" }');
  const [notesPath, costsPath] = [join(dir, 'notes'), join(dir, 'costs')];
  const head = `import { appendFileSync } from 'node:fs';
    import { getTest } from ${JSON.stringify(program)};
    const test = getTest();
    const note = (text) => appendFileSync(${JSON.stringify(notesPath)}, text + '\\n');
    const wait = () => new Promise((resolve) => setTimeout(resolve, 20));`;
  for (const [name, source] of Object.entries(sources))
    writeFileSync(join(dir, `${name}.js`), `${head}\n${source}`);
  const files = Object.keys(sources).map((label) => ({
    label,
    url: pathToFileURL(join(dir, `${label}.js`)).href,
  }));
  writeFileSync(notesPath, '');
  writeFileSync(
    join(dir, 'group.test.js'),
    `import { runGroup } from ${JSON.stringify(program)};
    await runGroup(${JSON.stringify({ files, costsPath })});`,
  );
  const env = { PATH: process.env['PATH'] };
  const child = spawn(process.execPath, [resolve('node_modules/ava/entrypoints/cli.mjs')], { cwd: dir, env });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((done) => child.on('close', done));
  const notes = readFileSync(notesPath, 'utf8').trim().split('\n');
  return { code, output, notes, costs: readFileSync(costsPath, 'utf8') };
}

test('each file of a group has its own hooks, serial tests run one by one before the others, and teardowns before hooks', async (t) => {
  const source = (name: string): string => `
    test.before((t) => { note('${name} before'); t.context.shared = '${name}'; });
    test.after.always(() => note('${name} after'));
    test.beforeEach(() => note('${name} each'));
    test('concurrent', async (t) => { note(t.context.shared + ' concurrent'); t.pass(); });
    test.serial('one', async (t) => {
      t.teardown(() => note('${name} teardown'));
      await wait();
      note('${name} one');
      t.pass();
    });
    test.serial('two', (t) => { note('${name} two'); t.pass(); });`;
  const { code, output, notes, costs } = await runGroup(t, { a: source('a'), b: source('b') });
  t.is(code, 0, output);
  t.regex(output, /6 tests passed/);
  const expected = (name: string): string[] =>
    ['before', 'each', 'one', 'teardown', 'each', 'two', 'each', 'concurrent', 'after'].map(
      (note) => `${name} ${note}`,
    );
  t.deepEqual(notes, [...expected('a'), ...expected('b')]);
  t.regex(costs, /^[\d.]+\ta\n[\d.]+\tb\n$/);
});

test('a failure stays in its file, and what it tears down and cleans up still runs', async (t) => {
  const { code, output, notes } = await runGroup(t, {
    a: `test.after.always(() => note('a after'));
      test('fails', (t) => { t.teardown(() => note('a teardown')); t.is(1, 2); });`,
    b: `test.before(() => { throw new Error('no server'); });
      test.after.always(() => note('b after'));
      test('never begins', (t) => { note('b test'); t.pass(); });`,
    c: `test.after.always(() => { throw new Error('not closed'); });
      test('is right, but its hook is not', (t) => t.pass());
      test.skip('is left out', () => note('c skipped'));`,
    d: `test('passes', (t) => { note('d passes'); t.pass(); });`,
  });
  t.is(code, 1);
  t.deepEqual(notes, ['a teardown', 'a after', 'b after', 'd passes']);
  for (const text of ['no server', 'not closed', '3 tests failed', '1 test skipped', 'd › passes']) {
    t.true(output.includes(text), `${text} is missing in:\n${output}`);
  }
});
