import type { RecalledReasoning } from '../../shared/queue/job-kinds.ts';
import { nameCall, type Recalled } from '../upstreams/upstream.ts';

export function toRecalled(reasoning: readonly RecalledReasoning[]): Recalled {
  return new Map(
    reasoning.map(({ messageIndex, toolCallId, value }) => [nameCall(messageIndex, toolCallId), value]),
  );
}
