import type { CatalogStore } from '../../catalog/catalog-store.ts';
import { queueOfModel, type QueueName } from './job-kinds.ts';

/** Lists the queues of all models in the catalog: those for which requests can be admitted. */
export const listQueuesInUse = ({ current }: Pick<CatalogStore, 'current'>): Set<QueueName> =>
  new Set(current.models.map(({ type }) => queueOfModel(type)));
