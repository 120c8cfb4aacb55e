// Builds the pages if their sources have changed since the last build.
// Usage: node scripts/bootstrap/web.mjs
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packagesStamp } from './packages.mjs';
import { readText, root, run, SetupError } from './processes.mjs';
import { webFolder, webSources } from './web-folder.mjs';

const builder = join(root, 'scripts', 'bootstrap', 'build-web.mjs');
const stampPath = join(root, 'dist', '.bootstrap-stamp-web');
const importedFile = /^(?:import|export) (?!type\b)[^'"]*from '(\.[^']+\.tsx?)';$/gm;

/** The pages share code with the server, such as what requests cost: adds what a source imports from outside. */
function addImports(path, sources) {
  for (const [, name] of readText(path).matchAll(importedFile)) {
    const imported = resolve(dirname(path), name);
    if (sources.has(imported)) continue;
    sources.add(imported);
    addImports(imported, sources);
  }
}

function listSources() {
  const names = readdirSync(webSources, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const sources = new Set(files.filter((path) => !path.includes('/generated/')));
  for (const path of Array.from(sources)) addImports(path, sources);
  return [...[...sources].sort(), builder];
}

/** Returns a hash of what the build consists of. */
function hashSources() {
  const hash = createHash('sha256').update(packagesStamp());
  for (const path of listSources()) hash.update(`\n${relative(root, path)}\n`).update(readFileSync(path));
  return hash.digest('hex');
}

/** Without sources, there is nothing to build, and no pages are served. */
export const hasWeb = () => existsSync(webSources);

export const isWebBuilt = () => !hasWeb() || (existsSync(webFolder) && readText(stampPath) === hashSources());

/** @throws SetupError */
export async function buildWeb() {
  if (isWebBuilt()) return;
  // Compute the hash first, so that files that change meanwhile are built by the next command.
  const hash = hashSources();
  const { code, output } = await run(process.execPath, [builder]);
  if (code !== 0)
    throw new SetupError(`${output.trimEnd()}\n\nThe pages could not be built; see the output above.`);
  mkdirSync(dirname(stampPath), { recursive: true });
  writeFileSync(stampPath, hash);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildWeb();
