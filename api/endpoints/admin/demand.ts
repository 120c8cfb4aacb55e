import type { Demand } from '../../../shared/work/demand/demand.ts';
import { summarizeQueue, toSeconds, type DemandSums } from '../../../shared/work/demand/summarize-demand.ts';
import { queueNames, type QueueName } from '../../../shared/work/queue/job-kinds.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateDemand } from './authenticate-admin.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';

export const getDemand = defineEndpoint(
  operations.getDemand,
  [beginInTurns, authenticateDemand],
  ({ demand }) =>
    async (context) => {
      const current = await demand.get();
      context.body = Object.fromEntries(queueNames.map((queue) => [queue, presentQueue(current, queue)]));
    },
);

function presentQueue(demand: Demand, queue: QueueName): object {
  const { workers, capacity } = demand.queues[queue];
  const summary = summarizeQueue(demand, queue);
  return {
    ...presentSums(summary),
    takeable: summary.takeable,
    takeable_waiting_seconds: toSeconds(summary.takeableMs),
    demand: summary.demand,
    eta_seconds: summary.etaSeconds,
    workers,
    capacity,
    models: Object.fromEntries(Array.from(summary.models, ([id, sums]) => [id, presentSums(sums)])),
  };
}

const presentSums = ({ waiting, waitingForSlot, running, oldestMs }: DemandSums): object => ({
  waiting,
  waiting_for_slot: waitingForSlot,
  running,
  oldest_waiting_seconds: toSeconds(oldestMs),
});
