import { measureAbortedStreams } from './aborted-streams.ts';
import { measureManyStreams } from './many-streams.ts';
import type { CapacityResult, CapacityRun } from './report.ts';
import { measureScale } from './scale.ts';
import { measureSlowReaders } from './slow-readers.ts';

export interface CapacityScenario {
  readonly name: string;
  readonly title: string;
  readonly measure: (run: CapacityRun) => Promise<CapacityResult>;
}

export const capacityScenarios: readonly CapacityScenario[] = [
  {
    name: 'many-streams',
    title: 'Many streams at once, each with a token a second',
    measure: measureManyStreams,
  },
  { name: 'slow-readers', title: 'Readers slower than the vendor', measure: measureSlowReaders },
  {
    name: 'aborted-streams',
    title: 'Leaks after streams of which a third are aborted at random',
    measure: measureAbortedStreams,
  },
  { name: 'scale', title: 'Chats with one and two api processes and workers', measure: measureScale },
];
