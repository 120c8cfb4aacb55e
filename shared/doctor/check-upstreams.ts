import type { AuditTrail } from '../admin/audit-trail.ts';
import type { CatalogModel } from '../catalog/catalog-schema.ts';
import type { CatalogStore } from '../catalog/catalog-store.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { testKeys } from '../admin/test-model.ts';
import { ok, problem, warning, type Finding } from './finding.ts';

/** What one call of each type costs, cheapest first. An image is not cheap. */
const cheapTypes: readonly CatalogModel['type'][] = ['embedding', 'chat', 'vision'];

/**
 * Has a live worker call each upstream once with each of its keys, with the cheapest of its models: a text to embed, or
 * a few tokens of a chat. Upstreams that have only image models are not called. Calls are recorded as tests of their models.
 */
export async function checkUpstreams(
  redis: RedisClient,
  catalog: CatalogStore,
  trail: AuditTrail,
): Promise<Finding[]> {
  const { upstreams, models } = catalog.current;
  const checks = upstreams.map(async ({ name }) => {
    const served = models.filter(
      (model) => catalog.isActive(model) && model.routes.some(({ upstream }) => upstream.name === name),
    );
    return served.length === 0 ? [] : await checkUpstream(redis, trail, name, served);
  });
  return (await Promise.all(checks)).flat();
}

async function checkUpstream(
  redis: RedisClient,
  trail: AuditTrail,
  name: string,
  served: readonly CatalogModel[],
): Promise<Finding[]> {
  const check = `upstream ${name}`;
  const [model] = cheapTypes.flatMap((type) => served.filter((one) => one.type === type));
  if (model === undefined)
    return [
      warning(
        check,
        'not called, because it has only image models',
        `admin model test ${served[0]!.id} makes one image with it.`,
      ),
    ];
  let results;
  try {
    results = await testKeys(redis, trail, model, name);
  } catch (error) {
    return [
      problem(
        check,
        (error as Error).message,
        'Start a worker: npm run worker. The call is recorded in MongoDB first.',
      ),
    ];
  }
  return results.map(({ ok: isOk, key, durationMs, status, reason }) => {
    const called = `${key === null || key === 'none' ? '' : `key ${key}: `}${model.id}`;
    return isOk
      ? ok(check, `${called} answered in ${durationMs} ms`)
      : problem(
          check,
          `${called} failed: ${reason ?? 'no reason given'}`,
          status === 401 || status === 403
            ? `Replace the key, then: admin upstream reset ${name}.`
            : `admin model test ${model.id} tries it again, by all routes.`,
        );
  });
}
