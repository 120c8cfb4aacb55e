import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { findAllImports, findSources } from '../support/find-imports.ts';

const top = ['shared', 'api', 'workers', 'scripts'] as const;
const [firstWithKoa, map] = ['api/http/request', 'docs/architecture.md'];

/** `a/{b,c}` are the folders `a/b` and `a/c`; a list may be followed by a description. */
const expand = (line: string): string[] => {
  const [, before, list] = /^([^\s{]+)(?:\{([^}]+)\})?/.exec(line)!;
  return list === undefined ? [before!] : list.split(',').map((name) => `${before}${name}`);
};

/** The folders of the map, in the order of imports. */
const order = readFileSync(map, 'utf8')
  .split('\n')
  .filter((line) => /^(shared|api|workers)\/\S+/.test(line))
  .flatMap(expand);

const readSource = (path: string) => ({ path, folder: dirname(path), imports: findAllImports(path) });
const files = top.flatMap(findSources).map(readSource);
const targetsOf = ({ folder, imports }: (typeof files)[number]): string[] =>
  imports.filter((name) => name.startsWith('.')).map((name) => join(folder, name));
const topOf = (path: string): string => path.split('/')[0]!;
/** Files that assemble a role, and the types of its parts. */
const isAssembly = (path: string): boolean => (top as readonly string[]).includes(dirname(path));

test('the map lists every folder with code, once', (t) => {
  const folders = new Set(
    files.filter(({ path }) => !path.startsWith('scripts/') && !isAssembly(path)).map(({ folder }) => folder),
  );
  t.deepEqual(order.toSorted(), [...folders].toSorted());
});

test('a folder imports only from itself and from folders before it in the map', (t) => {
  const wrong = files
    .filter(({ path }) => !path.startsWith('scripts/') && !isAssembly(path))
    .flatMap((file) =>
      targetsOf(file)
        .filter(
          (target) => !isAssembly(target) && order.indexOf(dirname(target)) > order.indexOf(file.folder),
        )
        .map((target) => `${file.path} imports ${target}`),
    );
  t.deepEqual(wrong, []);
});

test('api, workers and scripts import shared, and never each other', (t) => {
  const wrong = files.flatMap((file) =>
    targetsOf(file)
      .filter((target) => ![topOf(file.path), 'shared'].includes(topOf(target)))
      .map((target) => `${file.path} imports ${target}`),
  );
  t.deepEqual(wrong, []);
});

test('dialects do not import each other', (t) => {
  const dialectOf = (path: string): string | undefined => /^workers\/upstreams\/(\w+)\//.exec(path)?.[1];
  const wrong = files.flatMap((file) =>
    targetsOf(file).filter(
      (target) =>
        dialectOf(file.path) !== undefined &&
        dialectOf(target) !== undefined &&
        dialectOf(file.path) !== dialectOf(target),
    ),
  );
  t.deepEqual(wrong, []);
});

test('Koa is known only from the context of a request on', (t) => {
  const wrong = files
    .filter(({ path }) => path.startsWith('api/') && !isAssembly(path))
    .filter(({ folder }) => order.indexOf(folder) < order.indexOf(firstWithKoa))
    .filter(({ imports }) => imports.some((name) => /^(koa|@koa\/)/.test(name)))
    .map(({ path }) => path);
  t.deepEqual(wrong, []);
});

test('what only one of api, workers, scripts and web uses is kept there', (t) => {
  /** A typed caller of Lua scripts stays beside those whose Lua it includes. */
  const kept = new Set([
    'shared/money/pre-admit-script.ts',
    'shared/work/batches/keep-batch-scripts.ts',
    'shared/work/batches/slice-scripts.ts',
  ]);
  /** Rooms for the api and for workers that run batch files, which do not import them yet. */
  const forWorkers = /^shared\/(?:preparing|responses)\//;
  const users = new Map<string, Set<string>>();
  for (const file of [...files, ...findSources('web').map(readSource)])
    for (const target of targetsOf(file)) users.set(target, (users.get(target) ?? new Set()).add(file.path));
  const rolesOf = (path: string): Set<string> => {
    const reached = new Set([path]);
    for (const one of reached)
      if (topOf(one) === 'shared') for (const user of users.get(one) ?? []) reached.add(user);
    const roles = [...reached].map((one) => (forWorkers.test(one) ? 'workers' : topOf(one)));
    return new Set(roles.filter((name) => name !== 'shared'));
  };
  const wrong = files
    .filter(({ path }) => topOf(path) === 'shared' && !kept.has(path) && rolesOf(path).size < 2)
    .map(({ path }) => `${path} is used by ${[...rolesOf(path)].join() || 'nobody'} only`);
  t.deepEqual(wrong, []);
});

test('the map fits on a page', (t) => {
  t.true(existsSync(map));
  t.true(readFileSync(map, 'utf8').trimEnd().split('\n').length <= 80);
});
