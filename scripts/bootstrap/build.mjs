import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { packagesStamp } from './packages.mjs';
import { binOf, readText, root, runStep } from './processes.mjs';

const dist = join(root, 'dist');
const stampPath = join(dist, '.bootstrap-stamp');

function* walk(folder) {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    else yield path;
  }
}

/** Changes with any source that is added, changed or removed, and with the packages it is checked against. */
function hashSources() {
  const { include } = JSON.parse(readText(join(root, 'tsconfig.json')));
  const hash = createHash('sha256').update(packagesStamp());
  const add = (path) => {
    const { mtimeMs, size } = statSync(path);
    hash.update(`${relative(root, path)} ${mtimeMs} ${size}\n`);
  };
  add(join(root, 'tsconfig.json'));
  for (const folder of include) {
    for (const path of walk(join(root, folder))) if (path.endsWith('.ts')) add(path);
  }
  return hash.digest('hex');
}

export const isBuilt = () => readText(stampPath) === hashSources();

export async function build() {
  // Taken first: what changes while tsc runs is built by the next command.
  const hash = hashSources();
  const failure = 'The build failed; what tsc said is above.';
  await runStep('Building', failure, process.execPath, [binOf('typescript')]);
  removeOrphans();
  writeFileSync(stampPath, hash);
}

/** tsc leaves the compiled form of a source that is gone; a removed test would run for ever. */
function removeOrphans() {
  for (const path of walk(dist)) {
    if (!path.endsWith('.js') || !existsSync(`${path}.map`)) continue;
    if (existsSync(join(root, relative(dist, path).replace(/\.js$/, '.ts')))) continue;
    rmSync(path);
    rmSync(`${path}.map`);
  }
}
