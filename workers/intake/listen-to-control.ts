import type { QueueName } from '../../shared/queue/job-kinds.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisChannels } from '../../shared/redis/redis-keys.ts';
import type { ControlMessage } from '../../shared/reply/reply-channel.ts';

export interface ControlOptions {
  readonly subscriber: RedisClient;
  readonly workerId: string;
  readonly queues: readonly QueueName[];
  readonly onControl: (control: ControlMessage) => void;
  /** A line of this queue that had no waiting durable job has one. */
  readonly onJobsAdded: (queue: QueueName) => void;
}

/** Subscribes to what api processes tell this worker, and to news of durable jobs for its queues. */
export async function listenToControl(options: ControlOptions): Promise<void> {
  const { subscriber, workerId, queues, onControl, onJobsAdded } = options;
  const controlName = redisChannels.control(workerId);
  const controlChannel = Buffer.from(controlName);
  const jobChannels = queues.map((queue) => ({ queue, name: redisChannels.jobsAdded(queue) }));
  subscriber.on('messageBuffer', (channel: Buffer, message: Buffer) => {
    if (channel.equals(controlChannel)) {
      onControl(JSON.parse(message.toString('utf8')) as ControlMessage);
      return;
    }
    const added = jobChannels.find(({ name }) => channel.equals(Buffer.from(name)));
    if (added !== undefined) onJobsAdded(added.queue);
  });
  await subscriber.subscribe(controlName, ...jobChannels.map(({ name }) => name));
}
