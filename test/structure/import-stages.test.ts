import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { findImports } from '../support/find-imports.ts';

/**
 * Node opens all modules of one import at the same time. With a limit of 256 open files, a stage of more than this many
 * modules would prevent the process from starting.
 */
const maxModules = 200;

const isDynamic = (path: string, specifier: string): boolean =>
  readFileSync(path, 'utf8').includes(`await import('${specifier}')`);

/** Adds all modules that this one imports before it runs. */
function load(path: string, loaded: Set<string>): void {
  if (loaded.has(path)) return;
  loaded.add(path);
  for (const specifier of findImports(path)) {
    const target = join(dirname(path), specifier);
    if (specifier.startsWith('.') && existsSync(target) && !isDynamic(path, specifier)) load(target, loaded);
  }
}

for (const main of ['api/main.ts', 'workers/main.ts'])
  test(`${main} imports its modules in stages that fit into a limit of 256 open files`, (t) => {
    const loaded = new Set<string>();
    load(main, loaded);
    const stages = [...readFileSync(main, 'utf8').matchAll(/await import\('([^']+)'\)/g)].map(
      ([, specifier]) => join(dirname(main), specifier!),
    );
    t.true(stages.length > 2);
    for (const stage of stages) {
      const before = loaded.size;
      load(stage, loaded);
      t.true(loaded.size - before <= maxModules, `${stage}: ${loaded.size - before} modules`);
    }
    t.true(loaded.size > 500);
  });
