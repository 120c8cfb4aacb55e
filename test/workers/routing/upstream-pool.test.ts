import test from 'ava';
import type { Catalog } from '../../../shared/catalog/catalog-schema.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { UpstreamPool } from '../../../workers/routing/upstream-pool.ts';
import { createRoute } from '../../support/routing.ts';

test('when requests from before and after a catalog change alternate, the pool creates two upstreams and no more', async (t) => {
  const pool = new UpstreamPool(createLogger('test', 'silent'));
  const { upstream: before } = createRoute('a');
  const after = { ...before, timeoutMs: 2_000 };
  const used = new Set<unknown>();
  for (let i = 0; i < 20; i++) used.add(pool.get(before)).add(pool.get(after));
  t.is(used.size, 2);
  await pool.close();
});

test('an upstream that was removed from the catalog is reused until it closes', async (t) => {
  const pool = new UpstreamPool(createLogger('test', 'silent'));
  const { upstream: config } = createRoute('a');
  const upstream = pool.get(config);
  pool.closeRemoved({ upstreams: [] } as unknown as Catalog);
  t.is(pool.get(config), upstream);
  await pool.close();
  t.not(pool.get(config), upstream);
  await pool.close();
});
