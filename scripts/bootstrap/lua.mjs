// decision 0074
//
// Assembles the Lua scripts: writes each script of the sources to dist/, with the files that it includes. A file that
// others include is not a script. It may use names that those define before they include it.
// Usage: node scripts/bootstrap/lua.mjs
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readText, root } from './processes.mjs';

const folders = ['api', 'workers', 'shared', 'scripts'];
/** `-- include '../billing/stored-bytes.lua'`, relative to the file. */
const includePattern = /^-- include '(.+)'$/gm;

function* findLuaFiles(folder) {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* findLuaFiles(path);
    else if (path.endsWith('.lua')) yield path;
  }
}

function listIncludes(path) {
  return [...readText(path).matchAll(includePattern)].map(([, name]) => join(dirname(path), name));
}

/** Returns the text of a file in which each included file stands where it is first included. */
function assemble(path, included = new Set()) {
  included.add(path);
  return readText(path).replaceAll(includePattern, (_, name) => {
    const other = join(dirname(path), name);
    if (included.has(other)) return '';
    const text = assemble(other, included);
    if (text === '') throw new Error(`${relative(root, path)} includes ${name}, which does not exist.`);
    return `-- From ${name}\n${text}`;
  });
}

/** @returns the paths of the written files */
export function assembleLua() {
  const paths = folders.flatMap((folder) => [...findLuaFiles(join(root, folder))]);
  const included = new Set(paths.flatMap(listIncludes));
  return paths
    .filter((path) => !included.has(path))
    .map((path) => {
      const target = join(root, 'dist', relative(root, path));
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, assemble(path));
      return target;
    });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) assembleLua();
