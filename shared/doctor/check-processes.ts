import type { CatalogStore } from '../catalog/catalog-store.ts';
import { isLedgerBehind, readLedgerLag } from '../operator/ledger-lag.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisChannels } from '../platform/redis/redis-keys.ts';
import { productBuild } from '../platform/runtime/product-version.ts';
import { readDemand } from '../work/demand/read-demand.ts';
import { queueNames } from '../work/queue/job-kinds.ts';
import { listQueuesInUse } from '../work/queue/queues-in-use.ts';
import { ok, problem, warning, type Finding } from './finding.ts';

/** Checks what runs: api processes, workers of each queue and their builds, the ledger. */
export async function checkProcesses(
  redis: RedisClient,
  catalog: CatalogStore,
  { expectsWorkers }: { readonly expectsWorkers: boolean },
): Promise<Finding[]> {
  const [apis, demand, ledger] = await Promise.all([
    redis.spublish(redisChannels.apis, '') as Promise<number>,
    readDemand({ redis, catalog }),
    readLedgerLag(
      redis,
      redis.time().then(([seconds]) => Number(seconds) * 1_000),
    ),
  ]);
  const used = listQueuesInUse(catalog);
  const inUse = queueNames.filter((queue) => used.has(queue));
  const without = inUse.filter((queue) => demand.queues[queue].workers === 0);
  const builds = new Set(inUse.flatMap((queue) => [...demand.queues[queue].versions.keys()]));
  const others = [...builds].filter((version) => !version.endsWith(`+${productBuild}`));
  const counts = inUse.map((queue) => `${queue} ${demand.queues[queue].workers}`).join(', ');
  const findings = [
    apis === 0
      ? warning('api processes', 'none is running', 'Start one: npm run api.')
      : ok('api processes', `${apis}`),
  ];
  if (without.length === 0) findings.push(ok('workers', counts));
  else {
    const state = expectsWorkers ? problem : warning;
    findings.push(
      state('workers', `none takes ${without.join(', ')} requests`, 'Start one: npm run worker.'),
    );
  }
  if (others.length > 0)
    findings.push(
      warning(
        'builds',
        `workers run ${others.join(', ')}, this process ${productBuild}`,
        'Restart what runs another build (docs/deployment.md).',
      ),
    );
  const lag = `${ledger.entries} entries wait, the oldest for ${Math.round(ledger.oldestMs / 1_000)} s`;
  findings.push(
    isLedgerBehind(ledger)
      ? problem('ledger', lag, 'Look at the log of the workers: one of them writes it.')
      : ok('ledger', lag),
  );
  if (ledger.deadEntries > 0)
    findings.push(
      warning(
        'ledger entries that could not be read',
        `${ledger.deadEntries}`,
        'See "admin ledger dead" and docs/durability.md: money may be missing in balances.',
      ),
    );
  return findings;
}
