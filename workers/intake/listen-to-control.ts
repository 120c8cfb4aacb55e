import type { QueueName } from '../../shared/work/queue/job-kinds.ts';
import { redisChannels } from '../../shared/platform/redis/redis-keys.ts';
import type { Subscriber } from '../../shared/platform/redis/subscriber-client.ts';
import type { ControlMessage } from '../../shared/work/replies/worker-control.ts';

export interface ControlOptions {
  readonly subscriber: Subscriber;
  readonly workerId: string;
  readonly queues: readonly QueueName[];
  readonly onControl: (control: ControlMessage) => void;
  /** Called when an account gets its first waiting durable job for a model in this queue. */
  readonly onJobsAdded: (queue: QueueName) => void;
}

/** Subscribes to control messages from api processes for this worker, and to new durable jobs in its queues. */
export function listenToControl(options: ControlOptions): void {
  const { subscriber, workerId, queues, onControl, onJobsAdded } = options;
  subscriber.listen(redisChannels.control(workerId), {
    onMessage: (message) => onControl(JSON.parse(message.toString('utf8')) as ControlMessage),
  });
  for (const queue of queues)
    subscriber.listen(redisChannels.jobsAdded(queue), { onMessage: () => onJobsAdded(queue) });
}
