import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * `import … from 'x'`, `export … from 'x'`, `import 'x'`, `import('x')`, `import.meta.resolve('x')`,
 * `require.resolve('x')`.
 */
const importPattern =
  /(?:^|\n)\s*(?:import|export)\s(?!type\b)[^;'"]*?from '([^']+)'|(?:^|\n)\s*import '([^']+)'|(?:import|import\.meta\.resolve|require\.resolve|require)\(\s*'([^']+)'/g;

/** The runtime imports of a source file; type-only imports are left out. */
export function findImports(path: string): string[] {
  const text = readFileSync(path, 'utf8');
  return [...text.matchAll(importPattern)].map(([, from, bare, call]) => (from ?? bare ?? call)!);
}

/** All imports of a source file, with those of types and the programs that it starts as child processes. */
export const findAllImports = (path: string): string[] =>
  [
    ...readFileSync(path, 'utf8').matchAll(
      /(?:^|\n)(?:import|export|\})[^;'"]*?'([^']+)'|\bimport\('([^']+)'\)|new URL\('([^']+)\.js', import\.meta\.url\)/g,
    ),
  ].map(([, from, call, program]) => from ?? call ?? `${program}.ts`);

export function findSources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}

/** `@scope/name` or `name` for the import of a package; null for a project file or a Node builtin. */
export function packageOf(specifier: string): string | null {
  if (/^(\.|node:)/.test(specifier)) return null;
  return /^(@[^/]+\/)?[^/]+/.exec(specifier)![0];
}

/** The packages that these sources import, directly or through other project files. */
export function findReachedPackages(sources: readonly string[]): Set<string> {
  const packages = new Set<string>();
  const reached = new Set(sources);
  for (const source of reached) {
    for (const specifier of findImports(source)) {
      const name = packageOf(specifier);
      if (name !== null) packages.add(name);
      else if (specifier.startsWith('.')) reached.add(join(dirname(source), specifier));
    }
  }
  return packages;
}
