import { readFileSync } from 'node:fs';
import test from 'ava';
import { findReachedPackages, findSources } from '../support/find-imports.ts';

const { dependencies, optionalDependencies, devDependencies } = JSON.parse(
  readFileSync('package.json', 'utf8'),
) as Record<'dependencies' | 'optionalDependencies' | 'devDependencies', Record<string, string>>;

// Includes modules that no other module imports, because they are started by path as separate processes.
const product = findReachedPackages(['api', 'workers', 'shared', 'scripts/admin'].flatMap(findSources));
const embedded = findReachedPackages(findSources('scripts/embedded'));

test('api, workers and admin only import packages from dependencies, so that the image can omit the others', (t) => {
  t.true(product.has('koa') && product.has('undici') && product.has('mongoose'));
  t.deepEqual(
    [...product].filter((name) => dependencies[name] === undefined),
    [],
  );
});

test('the optional packages are those that only the embedded servers need', (t) => {
  const embeddedOnly = [...embedded].filter((name) => !product.has(name) && dependencies[name] === undefined);
  t.deepEqual(Object.keys(optionalDependencies).toSorted(), embeddedOnly.toSorted());
});

test('all other scripts only import packages that a full installation includes', (t) => {
  const all = { ...dependencies, ...optionalDependencies, ...devDependencies };
  const scripts = findReachedPackages([...findSources('scripts'), ...findSources('examples')]);
  t.deepEqual(
    [...scripts].filter((name) => all[name] === undefined),
    [],
  );
});

test("a worker's health check, which runs every few seconds, loads no package", (t) => {
  t.deepEqual([...findReachedPackages(['workers/health.ts'])], []);
});

test('packages run on the oldest supported Node version', (t) => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: Record<string, { dev?: boolean; engines?: { node?: string } }>;
  };
  const unsupported = Object.entries(packages)
    .filter(([, { dev, engines }]) => dev !== true && !allowsNode20(engines?.node ?? '*'))
    .map(([path]) => path);
  t.deepEqual(unsupported, []);
});

/** Whether a version range in package.json syntax includes 20.19. */
function allowsNode20(range: string): boolean {
  return range.split('||').some((part) =>
    [...part.matchAll(/(>=|<=|>|<|\^|~|=)?\s*v?(\d+)(?:\.(\d+|x))?(?:\.(\d+|x))?|\*/g)].every(
      ([all, operator = '', major, minor = 'x']) => {
        if (all === '*') return true;
        const version = Number(major) * 1_000 + (minor === 'x' ? 0 : Number(minor));
        if (operator === '>=') return version <= 20_019;
        if (operator === '>') return version < 20_019;
        if (operator === '<') return version > 20_019;
        if (operator === '<=') return version >= 20_019;
        return (
          Number(major) === 20 && (minor === 'x' || (operator !== '' ? Number(minor) <= 19 : minor === '19'))
        );
      },
    ),
  );
}
