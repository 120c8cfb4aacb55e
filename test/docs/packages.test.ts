import { readFileSync } from 'node:fs';
import test from 'ava';
import { findReachedPackages, findSources } from '../support/find-imports.ts';

const { dependencies, optionalDependencies, devDependencies } = JSON.parse(
  readFileSync('package.json', 'utf8'),
) as Record<'dependencies' | 'optionalDependencies' | 'devDependencies', Record<string, string>>;

// What a process is made of that is started by its path is among the sources of its folder.
const product = findReachedPackages(['api', 'workers', 'shared', 'scripts/admin'].flatMap(findSources));
const embedded = findReachedPackages(findSources('scripts/embedded'));

test('api, workers and the administrator import packages of dependencies alone, so that the image can leave the others out', (t) => {
  t.true(product.has('koa') && product.has('undici') && product.has('mongoose'));
  t.deepEqual(
    [...product].filter((name) => dependencies[name] === undefined),
    [],
  );
});

test('the optional packages are those that only the embedded servers need', (t) => {
  const ofEmbedded = [...embedded].filter((name) => !product.has(name) && dependencies[name] === undefined);
  t.deepEqual(Object.keys(optionalDependencies).toSorted(), ofEmbedded.toSorted());
});

test('every other script imports packages that are installed where nothing is left out', (t) => {
  const all = { ...dependencies, ...optionalDependencies, ...devDependencies };
  const scripts = findReachedPackages([...findSources('scripts'), ...findSources('examples')]);
  t.deepEqual(
    [...scripts].filter((name) => all[name] === undefined),
    [],
  );
});

test('the health check of a worker, which runs every few seconds, loads no package', (t) => {
  t.deepEqual([...findReachedPackages(['workers/health.ts'])], []);
});

test('packages run on the oldest Node that is supported', (t) => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: Record<string, { dev?: boolean; engines?: { node?: string } }>;
  };
  const refusing = Object.entries(packages)
    .filter(([, { dev, engines }]) => dev !== true && !allowsNode20(engines?.node ?? '*'))
    .map(([path]) => path);
  t.deepEqual(refusing, []);
});

/** Whether a range of versions, as package.json has it, has 20.19 in it. */
function allowsNode20(range: string): boolean {
  return range.split('||').some((part) =>
    [...part.matchAll(/(>=|<=|>|<|\^|~|=)?\s*v?(\d+)(?:\.(\d+|x))?(?:\.(\d+|x))?|\*/g)].every(
      ([all, operator = '', major, minor = 'x']) => {
        if (all === '*') return true;
        const wanted = Number(major) * 1_000 + (minor === 'x' ? 0 : Number(minor));
        if (operator === '>=') return wanted <= 20_019;
        if (operator === '>') return wanted < 20_019;
        if (operator === '<') return wanted > 20_019;
        if (operator === '<=') return wanted >= 20_019;
        return (
          Number(major) === 20 && (minor === 'x' || (operator !== '' ? Number(minor) <= 19 : minor === '19'))
        );
      },
    ),
  );
}
