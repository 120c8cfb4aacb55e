import test from 'ava';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { embedLines } from '../../../workers/batches/embed-lines.ts';
import type { ReservedLine } from '../../../workers/batches/ready-line.ts';
import type { FinishedLine } from '../../../workers/batches/slice-results.ts';
import type { EmbeddingTask } from '../../../workers/embeddings/embedding-task.ts';
import type { JobDeps } from '../../../workers/runs/job-context.ts';

const createLine = (index: number, inputs: readonly string[]): ReservedLine =>
  ({
    index,
    id: `batch_req_${index}`,
    customId: `line-${index}`,
    model: {
      id: 'vectors',
      priceVersion: 'v1',
      pricing: { type: 'tokens', date_of_use: '2026-01-01', in_cost_per_million: 1 },
    },
    estimate: {
      promptTokens: inputs.length,
      user: null,
      fixedNano: 10n,
      nanoPerUnit: 0n,
      sharePermille: 1_000,
    },
    units: 0,
    reservedNano: 10n,
    work: {
      kind: 'embedding',
      format: 'float',
      job: { dimensions: null, inputs, inputTokens: inputs.map(() => 1) },
    },
  }) as unknown as ReservedLine;

test('a line of which only some inputs were embedded before it was withdrawn has no result, so that it runs again', async (t) => {
  const withdrawn = new AbortController();
  const vector = {
    vector: Buffer.alloc(8),
    bufferRef: null,
    dimensions: 2,
    tokens: 1,
    counted: false,
    billedMs: 0,
    vendorCostNano: null,
  };
  const embeddings = {
    embed: async (_model: string, task: EmbeddingTask) => {
      withdrawn.abort();
      const error: unknown = withdrawn.signal.reason;
      task.onLines!([
        { line: 0, outcomes: [vector], reachedModel: true },
        { line: 1, outcomes: [vector, { error }], reachedModel: true },
        { line: 2, outcomes: [{ error }], reachedModel: false },
      ]);
    },
  };
  const dependencies = { embeddings, catalog: { find: () => undefined } } as unknown as JobDeps;
  const lines = [createLine(0, ['one']), createLine(1, ['two', 'three']), createLine(2, ['four'])];
  const finished: FinishedLine[] = [];
  const context = {
    accountId: 'an-account',
    userIp: '127.0.0.1',
    log: createLogger('test', 'silent'),
    linkOf: (key: string) => key,
    imagesDueAtMs: 0,
    withdrawn: withdrawn.signal,
    stopping: new AbortController().signal,
    write: (maxBytes: number, write: (target: Buffer, at: number) => number) => {
      const target = Buffer.alloc(maxBytes);
      return target.subarray(0, write(target, 0));
    },
  };
  await embedLines(dependencies, lines, context, (line) => {
    finished.push(line);
  });
  t.deepEqual(
    finished.map(({ index, status }) => ({ index, status })),
    [{ index: 0, status: 200 }],
  );
});
