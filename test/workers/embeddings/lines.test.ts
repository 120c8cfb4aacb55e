import test from 'ava';
import { AppError } from '../../../shared/contract/errors.ts';
import { dropVectors, BufferRef, type FinishedLine } from '../../../workers/embeddings/embedding-task.ts';
import { PendingInput, PendingRequest } from '../../../workers/embeddings/embedding-work.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createTestScheduler, type TestScheduler } from '../../support/embedding-scheduler.ts';

/** Lines of a task succeed or fail independently. */

const textsOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `text ${i}`);
const linesOf = (inputs: readonly string[]): number[] => inputs.map((_, i) => i);
const describe = ({ outcomes }: Pick<FinishedLine, 'outcomes'>): string[] =>
  outcomes.map((outcome) => {
    if ('vector' in outcome) return 'served';
    return outcome.error instanceof AppError ? outcome.error.code : String(outcome.error);
  });

async function embedLines(
  { embed }: TestScheduler,
  inputs: readonly string[],
  lines = linesOf(inputs),
): Promise<string[]> {
  return describe(await embed(inputs, { isBackground: true, lines }));
}

const isBad = (inputs: readonly string[]): boolean => inputs.some((text) => text.startsWith('bad'));

test('if inputs of some lines are rejected, only those lines fail, after at most 2⌈log₂ n⌉ further calls for each', async (t) => {
  // As many as the first call takes.
  for (const bad of [[0], [127], [50], [3, 70, 71]]) {
    const texts = textsOf(128);
    for (const line of bad) texts[line] = `bad ${line}`;
    const scheduler = createTestScheduler(t, {
      grantsSlots: true,
      respond: (inputs) => (isBad(inputs) ? new UpstreamError('rejected', 'no') : null),
    });
    t.deepEqual(
      await embedLines(scheduler, texts),
      texts.map((text) => (isBad([text]) ? 'upstream_rejected' : 'served')),
    );
    const further = scheduler.calls.length - 1;
    t.true(further <= 2 * 7 * bad.length, `${further} further calls for ${bad.length} bad lines`);
  }
});

test('if the server fails at one line, only that line fails, after at most ⌈log₂ n⌉ + 1 further calls', async (t) => {
  for (const bad of [0, 100, 255]) {
    const texts = textsOf(256);
    texts[bad] = 'bad';
    const scheduler = createTestScheduler(t, {
      grantsSlots: true,
      respond: (inputs) =>
        isBad(inputs) ? new UpstreamError('unavailable', 'it broke', { status: 500 }) : null,
    });
    t.deepEqual(
      await embedLines(scheduler, texts),
      texts.map((text) => (text === 'bad' ? 'upstream_rejected' : 'served')),
    );
    t.true(scheduler.calls.length - 1 <= 8 + 1);
  }
});

test('if every line is bad, the search ends, and rejects as many of them as it finds', async (t) => {
  const texts = textsOf(128).map((_, i) => `bad ${i}`);
  const scheduler = createTestScheduler(t, {
    grantsSlots: true,
    respond: () => new UpstreamError('rejected', 'no'),
  });
  const results = await embedLines(scheduler, texts);
  t.deepEqual([...new Set(results)].toSorted(), ['upstream_error', 'upstream_rejected']);
  t.true(scheduler.calls.length <= 1 + 64 + 32);
  t.true(results.filter((result) => result === 'upstream_rejected').length >= 16);
});

test('if an input has an invalid vector, only its line fails, with the position of the input in its line', async (t) => {
  const scheduler = createTestScheduler(t, {
    grantsSlots: true,
    respond: () => null,
    isBroken: (text) => text === 'broken',
  });
  const inputs = ['a', 'b', 'broken', 'c', 'd', 'broken'];
  const { outcomes } = await scheduler.embed(inputs, { isBackground: true, lines: [1, 2, 2, 2, 3, 4] });
  t.deepEqual(describe({ outcomes }), [
    'served',
    'served',
    'upstream_rejected',
    'served',
    'served',
    'upstream_rejected',
  ]);
  const messages = outcomes.flatMap((outcome) =>
    'error' in outcome ? [(outcome.error as AppError).message] : [],
  );
  t.true(messages[0]!.includes('input.1'), messages[0]);
  t.true(messages[1]!.includes('the input'), messages[1]);
});

test('inputs of a failed line that were not sent are withdrawn, and those of other lines are still sent', async (t) => {
  const scheduler = createTestScheduler(t, { maxInputs: 2, isBroken: (text) => text === 'broken' });
  const answer = embedLines(scheduler, ['a', 'broken', 'same line', 'also', 'other'], [0, 1, 1, 1, 2]);
  (await scheduler.waitForSlot('batch')).grant();
  (await scheduler.nextCall()).respond();
  const slot = await scheduler.waitForSlot('batch');
  while (scheduler.scheduler.waiting > 1) await new Promise(setImmediate);
  slot.grant();
  const call = await scheduler.nextCall();
  t.deepEqual(call.inputs, ['other']);
  call.respond();
  t.deepEqual(await answer, [
    'served',
    'upstream_rejected',
    'upstream_rejected',
    'upstream_rejected',
    'served',
  ]);
});

test('lines are handed over as soon as they end, all those of a call at once, while another call is still running', async (t) => {
  const scheduler = createTestScheduler(t, { maxInputs: 3 });
  const handed: (readonly FinishedLine[])[] = [];
  const answer = scheduler.embed(textsOf(6), {
    isBackground: true,
    lines: [10, 10, 12, 12, 14, 15],
    onLines: (lines) => handed.push(lines),
  });
  for (let i = 0; i < 2; i++) (await scheduler.waitForSlot('batch')).grant();
  const [slow, fast] = [await scheduler.nextCall(), await scheduler.nextCall()];
  fast.respond();
  while (handed.length === 0) await new Promise(setImmediate);
  t.deepEqual(
    handed[0]!.map(({ line, outcomes, reachedModel }) => [line, outcomes.length, reachedModel]),
    [
      [14, 1, true],
      [15, 1, true],
    ],
  );
  slow.respond();
  const { outcomes } = await answer;
  t.deepEqual(
    handed.slice(1).map((lines) => lines.map(({ line, outcomes }) => [line, outcomes.length])),
    [
      [
        [10, 2],
        [12, 2],
      ],
    ],
  );
  t.true(
    handed
      .flat()
      .every((line) => line.outcomes.every((outcome) => 'vector' in outcome && outcome.vector.length === 4)),
  );
  t.deepEqual(outcomes, [], 'a vector is handed over once');
});

/** A task of two lines, one of two inputs and one of one, whose lines are handed to `onLines`. */
function createLines(onLines: (lines: readonly FinishedLine[]) => void): {
  request: PendingRequest;
  inputs: PendingInput[];
} {
  const { signal } = new AbortController();
  const request = new PendingRequest({
    accountId: 'ann',
    inputs: ['a', 'b', 'c'],
    lines: [0, 0, 1],
    inputTokens: [1, 1, 1],
    isBackground: true,
    user: null,
    dimensions: null,
    isPaidByTime: false,
    signal,
    stopSignal: signal,
    deadlineAtMs: Infinity,
    log: undefined as never,
    onLines,
  });
  const inputs = request.task.inputs.map((text, i) => {
    const input = new PendingInput(request, text, 1);
    input.claim(request, i);
    return input;
  });
  return { request, inputs };
}

const vector = {
  vector: Buffer.alloc(4),
  dimensions: 1,
  tokens: 1,
  counted: false,
  billedMs: 0,
  vendorCostNano: null,
};

test('the buffer of a call is released when the lines that were handed over have dropped its vectors', async (t) => {
  let releases = 0;
  const bufferRef = new BufferRef(() => {
    releases += 1;
  });
  const handed: FinishedLine[] = [];
  const { request, inputs } = createLines((lines) => handed.push(...lines));
  bufferRef.take();
  for (const input of inputs) input.deliver({ ...vector, bufferRef });
  bufferRef.drop();
  dropVectors(await request.answer);
  t.is(releases, 0);
  t.is(handed.length, 2);
  for (const line of handed) dropVectors(line);
  t.is(releases, 1);
});

test('after a cancellation, lines that were sent are handed over with their vectors, and the others fail', async (t) => {
  const handed: FinishedLine[] = [];
  const { request, inputs } = createLines((lines) => handed.push(...lines));
  inputs[2]!.markSent();
  const reason = new Error('cancelled');
  t.deepEqual([...request.leave(reason)], inputs.slice(0, 2));
  inputs[2]!.deliver({ ...vector, bufferRef: null });
  t.true((await request.answer).hasDisconnected);
  t.deepEqual(handed, [
    { line: 0, outcomes: [{ error: reason }, { error: reason }], reachedModel: false },
    { line: 1, outcomes: [{ ...vector, bufferRef: null }], reachedModel: true },
  ]);
});

test('at the deadline, the lines of which no input was sent fail', async (t) => {
  const handed: FinishedLine[] = [];
  const { request, inputs } = createLines((lines) => handed.push(...lines));
  inputs[0]!.markSent();
  const error = new AppError('deadline_exceeded');
  t.deepEqual([...request.expire(error)], [inputs[2]]);
  t.true(inputs[1]!.isNeeded, 'it is in a line with an input that was sent');
  for (const input of inputs) input.deliver({ ...vector, bufferRef: null });
  await request.answer;
  const results = handed.toSorted((a, b) => a.line - b.line).map(describe);
  t.deepEqual(results, [['served', 'served'], ['deadline_exceeded']]);
});
