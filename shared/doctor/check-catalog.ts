import type { CatalogStore } from '../catalog/catalog-store.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { describeRoutes } from '../admin/upstreams.ts';
import { ok, problem, warning, type Finding } from './finding.ts';

/** How many are named. */
const maxNamed = 5;

/** Checks that the catalog has models that can be served, and that the running workers can call them. */
export async function checkCatalog(redis: RedisClient, catalog: CatalogStore): Promise<Finding[]> {
  const { models, warnings } = catalog.current;
  const active = models.filter((model) => catalog.isActive(model));
  const found = `${active.length} of ${models.length} models active`;
  if (active.length === 0)
    return [
      problem('catalog', found, 'Set the keys of its upstreams: admin model list names what is missing.'),
    ];
  const findings = [
    ok('catalog', found),
    ...warnings.map((text) =>
      warning('catalog', text, 'Set what is missing, or take the entry out of the catalog.'),
    ),
  ];
  const rows = await describeRoutes({ redis }, catalog, null);
  const stopped = rows.filter((row) => row.not_called !== null);
  const dead = active.filter(({ id }) => {
    const ofModel = rows.filter(({ model }) => model === id);
    return ofModel.length > 0 && ofModel.every((row) => stopped.includes(row));
  });
  if (dead.length > 0)
    findings.push(
      problem(
        'routes',
        `no route can be called of ${nameSome(dead.map(({ id }) => id))}`,
        'admin upstream list says why; admin upstream reset tries them at once.',
      ),
    );
  else if (stopped.length > 0)
    findings.push(
      warning(
        'routes',
        `${stopped.length} of ${rows.length} cannot be called: ${nameSome(stopped.map(({ upstream, model }) => `${upstream} for ${model}`))}`,
        'admin upstream list says why.',
      ),
    );
  else findings.push(ok('routes', `${rows.length}, none stopped`));
  return findings;
}

function nameSome(names: readonly string[]): string {
  const different = [...new Set(names)];
  const more = different.length - maxNamed;
  return different.slice(0, maxNamed).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
