import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { describeExposure, prepareDataDir } from '../../../scripts/start/prepare-data-dir.ts';
import { readPrivateFile, writePrivateFile } from '../../../scripts/start/private-file.ts';
import { makeFolder } from './fake-parts.ts';

const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? test : test.skip;

/** Prepares the folder as a user other than root, and returns the error message. */
async function prepareAsUser(t: ExecutionContext, dataDir: string): Promise<string> {
  const module = new URL('../../../scripts/start/prepare-data-dir.js', import.meta.url);
  const leaveRoot = isRoot ? `process.setgid(${nobody}); process.setuid(${nobody});` : '';
  const program = `import { prepareDataDir } from ${JSON.stringify(module)};
    ${leaveRoot} try { prepareDataDir(${JSON.stringify(dataDir)}); } catch (error) { console.log(error.message); }`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return output;
}

test('files in DATA_DIR that the parts do not use may be inaccessible, but files that they use must not be', async (t) => {
  const dataDir = makeFolder(t);
  if (isRoot) chownSync(dataDir, nobody, nobody);
  // Files that may be in DATA_DIR: the lost+found folder of a mounted disk, a copy made by root, and a note.
  const lostAndFound = join(dataDir, 'lost+found');
  mkdirSync(lostAndFound, { mode: 0 });
  t.teardown(() => chmodSync(lostAndFound, 0o700));
  writeFileSync(join(dataDir, 'secrets.json.bak'), '{}', { mode: 0 });
  writeFileSync(join(dataDir, 'NOTE'), '', { mode: 0o444 });
  t.is(await prepareAsUser(t, dataDir), '');
  writeFileSync(join(dataDir, 'secrets.json'), '{}', { mode: 0 });
  t.regex(await prepareAsUser(t, dataDir), /^\S+secrets\.json \(in DATA_DIR\) cannot be used: /);
});

test('if every user may write to the folder, this is reported', (t) => {
  const dataDir = makeFolder(t);
  prepareDataDir(dataDir);
  t.is(describeExposure(dataDir), null);
  chmodSync(dataDir, 0o777);
  t.regex(describeExposure(dataDir) ?? '', new RegExp(`: every user may write to ${dataDir}\\. Make user`));
});

asRoot('a folder or secrets owned by another user are reported', (t) => {
  const dataDir = makeFolder(t);
  writePrivateFile(join(dataDir, 'secrets.json'), {});
  chownSync(join(dataDir, 'secrets.json'), nobody, nobody);
  t.regex(describeExposure(dataDir) ?? '', new RegExp(`: ${dataDir}/secrets.json belongs to user ${nobody}`));
  chownSync(dataDir, nobody, nobody);
  t.regex(
    describeExposure(dataDir) ?? '',
    new RegExp(`: ${dataDir} belongs to user ${nobody}, and ${dataDir}/se`),
  );
});

test('if the secrets file is readable by others, for example after a restore, reading it makes it private', (t) => {
  const path = join(makeFolder(t), 'secrets.json');
  writeFileSync(path, '{"a": 1}', { mode: 0o644 });
  t.deepEqual(readPrivateFile(path), { a: 1 });
  t.is(statSync(path).mode & 0o777, 0o600);
});

test('a symbolic link with the name of the temporary file is not followed', (t) => {
  const folder = makeFolder(t);
  const path = join(folder, 'secrets.json');
  const elsewhere = join(folder, 'elsewhere');
  writeFileSync(elsewhere, 'as it was');
  symlinkSync(elsewhere, `${path}.${process.pid}`);
  writePrivateFile(path, { a: 1 });
  t.deepEqual(readPrivateFile(path), { a: 1 });
  t.is(statSync(elsewhere).size, 'as it was'.length);
  t.deepEqual(readdirSync(folder).toSorted(), ['elsewhere', 'secrets.json', `secrets.json.${process.pid}`]);
});
