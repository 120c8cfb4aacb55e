import type { LoadedReasoning } from '../../shared/work/queue/job-kinds.ts';
import { nameCall, type Recalled } from '../upstreams/upstream.ts';

export function toLoadedReasoning(reasoning: readonly LoadedReasoning[]): Recalled {
  return new Map(
    reasoning.map(({ messageIndex, toolCallId, value }) => [nameCall(messageIndex, toolCallId), value]),
  );
}
