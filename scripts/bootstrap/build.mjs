import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { bundleFolder } from './bundle-folder.mjs';
import { assembleLua } from './lua.mjs';
import { packagesStamp } from './packages.mjs';
import { writeAvaEntry } from './test-groups.mjs';
import { buildWeb, isWebBuilt } from './web.mjs';
import { binOf, readText, SetupError, root, run, runStep, say } from './processes.mjs';

const dist = join(root, 'dist');

/** The product is built without the tests, so that a test that does not compile does not prevent a start. */
const projects = { product: 'tsconfig.build.json', all: 'tsconfig.json' };
const stampPath = (project) => join(dist, `.bootstrap-stamp-${project}`);

function* walk(folder) {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    else yield path;
  }
}

/** Returns a hash that changes if a source file is added, changed or removed, or if the installed packages change. */
function hashSources(project) {
  const { include } = JSON.parse(readText(join(root, projects[project])));
  const hash = createHash('sha256').update(packagesStamp());
  const add = (path) => {
    const { mtimeMs, size } = statSync(path);
    hash.update(`${relative(root, path)} ${mtimeMs} ${size}\n`);
  };
  for (const name of Object.values(projects)) add(join(root, name));
  for (const folder of include) {
    for (const path of walk(join(root, folder))) if (/\.(ts|lua)$/.test(path)) add(path);
  }
  return hash.digest('hex');
}

export const isBuilt = (project) => readText(stampPath(project)) === hashSources(project) && isWebBuilt();

export async function build(project) {
  checkPackages();
  // Compute the hash first, so that files that change while tsc runs are built by the next command.
  const hash = hashSources(project);
  const failure = 'The build failed; see the output of tsc above.';
  const compile = [binOf('typescript'), '-p', projects[project]];
  await Promise.all([runStep('Building', failure, process.execPath, compile), bundlePackages(), buildWeb()]);
  if (project === 'all') writeAvaEntry();
  assembleLua();
  removeOrphans();
  writeBuildId();
  writeFileSync(stampPath(project), hash);
}

/** Names the build after its source, so that processes can tell which one they run. */
function writeBuildId() {
  const hash = createHash('sha256').update(packagesStamp());
  const { include } = JSON.parse(readText(join(root, projects.product)));
  for (const folder of include) {
    for (const path of [...walk(join(root, folder))].sort((a, b) => (a < b ? -1 : 1)))
      if (/\.(ts|lua)$/.test(path)) hash.update(`${relative(root, path)}\n`).update(readFileSync(path));
  }
  writeFileSync(join(dist, 'build.json'), JSON.stringify({ build: hash.digest('hex').slice(0, 8) }));
}

const bundler = join(root, 'scripts', 'bootstrap', 'bundle-packages.mjs');
const bundlesStampPath = join(dist, '.bootstrap-stamp-packages');

/** Without bundles, everything works, but each process takes longer to start. */
async function bundlePackages() {
  const stamp = createHash('sha256').update(packagesStamp()).update(readText(bundler)).digest('hex');
  if (readText(bundlesStampPath) === stamp) return;
  const { code, output } = await run(process.execPath, [bundler]);
  if (code !== 0) {
    rmSync(bundleFolder, { recursive: true, force: true });
    say(`Packages are not bundled, so processes start slower:\n${output.trimEnd()}`);
    return;
  }
  mkdirSync(dist, { recursive: true });
  writeFileSync(bundlesStampPath, stamp);
}

/** Without this check, tsc would report every import in the embedded servers whose module is missing. */
function checkPackages() {
  const { optionalDependencies = {} } = JSON.parse(readText(join(root, 'package.json')));
  const missing = Object.keys(optionalDependencies).filter(
    (name) => !existsSync(join(root, 'node_modules', name)),
  );
  if (missing.length === 0) return;
  throw new SetupError(
    `The build needs all packages, and these are not installed: ${missing.join(', ')}. Run "npm ci" without --omit.`,
  );
}

/** Removes compiled files whose source is gone. tsc does not, so a removed test would continue to run. */
function removeOrphans() {
  for (const path of walk(dist)) {
    if (path.endsWith('.lua') && !existsSync(join(root, relative(dist, path)))) rmSync(path);
    if (!path.endsWith('.js') || !existsSync(`${path}.map`)) continue;
    if (existsSync(join(root, relative(dist, path).replace(/\.js$/, '.ts')))) continue;
    rmSync(path);
    rmSync(`${path}.map`);
  }
}
