import { operations } from '../../contract/operations.ts';
import { defineEndpoint, type ContextOf } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { PreparedBodies, PreparedBody } from '../../http/responses/prepared-body.ts';
import { describeHealth } from '../../operator/conditions/describe-health.ts';
import { listQueuesInUse } from '../../../shared/work/queue/queues-in-use.ts';
import { sendPrepared } from '../../responses/send-prepared.ts';

export const getHealth = defineEndpoint(
  operations.getHealth,
  [beginInTurns],
  ({ system, catalog, config: { expectsWorkers } }) => {
    const bodies = new PreparedBodies();
    return async (context: ContextOf<typeof operations.getHealth>) => {
      const reading = await system.read();
      const { health, isServing } = describeHealth(reading, {
        queuesInUse: listQueuesInUse(catalog),
        expectsWorkers,
      });
      const { strict } = context.state.query;
      const isStrict = strict !== undefined && strict !== 'false';
      const isDown = health.status === 'down' || (isStrict && !isServing);
      const body = bodies.get([reading, catalog.current], '', () => PreparedBody.ofJson(health));
      await sendPrepared(context, body, 'no-store', isDown ? 503 : 200);
    };
  },
);
