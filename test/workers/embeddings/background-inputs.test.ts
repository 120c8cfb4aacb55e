import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createTestScheduler } from '../../support/embedding-scheduler.ts';

/** Lines of batch files share a scheduler with requests and durable jobs, but come after them. */

const textsOf = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${name} ${i}`);
const linesOf = (inputs: readonly string[]): number[] => inputs.map((_, i) => i);
const background = (inputs: readonly string[], accountId = 'batch') => ({
  accountId,
  isBackground: true,
  lines: linesOf(inputs),
});
const asJob = { accountId: 'job', begin: () => Promise.resolve() };

test('an interactive call takes no background inputs, and as many others as without them', async (t) => {
  const sizes: number[] = [];
  for (const lines of [0, 1_000]) {
    const { embed, waitForSlot, nextCall } = createTestScheduler(t, { slots: 8 });
    const texts = textsOf('line', lines);
    if (lines > 0) void embed(texts, background(texts));
    void embed(textsOf('text', 400));
    (await waitForSlot('interactive')).grant();
    const { inputs } = await nextCall();
    t.true(inputs.every((text) => text.startsWith('text')));
    sizes.push(inputs.length);
  }
  t.is(sizes[0], sizes[1]);
  t.true(sizes[0]! < 400, 'the rest is for other slots');
});

test('calls for background inputs are as full as the limits allow, across accounts, and ask for slots of their own class', async (t) => {
  const { embed, waiting, waitForSlot, nextCall } = createTestScheduler(t, { maxInputs: 100 });
  const [first, second] = [textsOf('a', 150), textsOf('b', 30)];
  void embed(first, background(first, 'first'));
  void embed(second, background(second, 'second'));
  const slot = await waitForSlot('batch');
  t.deepEqual(slot.accountIds, ['first', 'second']);
  slot.grant(5);
  t.is((await nextCall()).inputs.length, 100);
  const next = await waitForSlot('batch');
  t.is(waiting.length, 1, 'the rest needs one call');
  next.grant(4);
  t.is((await nextCall()).inputs.length, 80);
  await setImmediate();
  t.is(waiting.length, 0);
});

test('background inputs wait for others that fill their call, but not for long', async (t) => {
  const { embed, waiting, waitForSlot, nextCall } = createTestScheduler(t, {
    maxInputs: 100,
    expectsLines: () => true,
  });
  const [first, second] = [textsOf('a', 60), textsOf('b', 70)];
  void embed(first, background(first));
  await setImmediate();
  t.is(waiting.length, 0);
  void embed(second, background(second));
  (await waitForSlot('batch')).grant(5);
  t.is((await nextCall()).inputs.length, 100);
  (await waitForSlot('batch')).grant();
  t.is((await nextCall()).inputs.length, 30);
});

// Of 4 slots, batch calls use 3. At least two calls, and at most eight, are prepared.
for (const { slots, enough } of [
  { slots: 2, enough: 200 },
  { slots: 4, enough: 300 },
  { slots: 64, enough: 800 },
])
  test(`no more lines are wanted while ${enough / 100} full calls wait for a model with ${slots} slots`, async (t) => {
    const { scheduler, embed, waitForSlot, nextCall } = createTestScheduler(t, { maxInputs: 100, slots });
    const [first, second] = [textsOf('a', enough - 1), textsOf('b', 1)];
    void embed(first, background(first));
    await setImmediate();
    t.is(scheduler.whenLinesWanted, null);
    void embed(second, background(second));
    await setImmediate();
    const { whenLinesWanted } = scheduler;
    t.true(whenLinesWanted instanceof Promise);
    (await waitForSlot('batch')).grant();
    await nextCall();
    await whenLinesWanted;
    t.is(scheduler.whenLinesWanted, null);
  });

test('the first calls for background inputs are small and few, whatever the vendor would take', async (t) => {
  const { embed, waiting, waitForSlot, nextCall } = createTestScheduler(t, {
    maxInputs: 2_048,
    slots: 1_000,
  });
  const lines = textsOf('line', 5_000);
  void embed(lines, background(lines));
  for (let call = 0; call < 8; call += 1) {
    (await waitForSlot('batch')).grant(1_000);
    t.is((await nextCall()).inputs.length, 128);
  }
  await setImmediate();
  t.is(waiting.length, 0, 'nothing else asks for a slot until one of them has ended');
});

test('a call for background inputs begins with the inputs of callers who wait at that moment', async (t) => {
  const { embed, waiting, waitForSlot, nextCall } = createTestScheduler(t, { maxInputs: 100 });
  const lines = textsOf('line', 150);
  void embed(lines, background(lines));
  const slot = await waitForSlot('batch');
  void embed(['one', 'two'], { accountId: 'caller' });
  void embed(['of a job'], asJob);
  await waitForSlot('interactive');
  await waitForSlot('job');
  slot.grant();
  const { inputs } = await nextCall();
  t.deepEqual(inputs.slice(0, 3), ['one', 'two', 'line 0']);
  t.is(inputs.length, 100);
  t.false(inputs.includes('of a job'), 'callers do not wait until the start of a job is recorded');
  await waitForSlot('batch');
  t.deepEqual(waiting.map(({ callClass }) => callClass).toSorted(), ['batch', 'job'], 'no caller waits now');
});

test('if no caller waits, a call for background inputs begins with the inputs of jobs', async (t) => {
  const { embed, waiting, waitForSlot, nextCall } = createTestScheduler(t, { maxInputs: 100 });
  const lines = textsOf('line', 150);
  void embed(lines, background(lines));
  const slot = await waitForSlot('batch');
  void embed(['of a job'], asJob);
  await waitForSlot('job');
  slot.grant();
  const { inputs } = await nextCall();
  t.deepEqual(inputs.slice(0, 2), ['of a job', 'line 0']);
  t.is(inputs.length, 100);
  await waitForSlot('batch');
  t.is(waiting.length, 1, 'no job waits now');
});

test('background inputs fill the calls of jobs up to the limits', async (t) => {
  const { embed, waiting, waitForSlot, nextCall } = createTestScheduler(t, { maxInputs: 100 });
  const lines = textsOf('line', 60);
  void embed(lines, background(lines));
  void embed(['of a job'], asJob);
  await waitForSlot('batch');
  (await waitForSlot('job')).grant();
  t.deepEqual((await nextCall()).inputs, ['of a job', ...lines]);
  t.is(waiting.length, 0, 'no background input is left to ask for a slot');
});

test('what may not share a call with others does not share one with background inputs either', async (t) => {
  const { embed, waitForSlot, nextCall } = createTestScheduler(t);
  const lines = textsOf('line', 10);
  void embed(lines, background(lines));
  void embed(['shorter'], { ...asJob, dimensions: 8 });
  void embed(['by time'], { ...asJob, accountId: 'timed', isPaidByTime: true });
  for (const text of ['shorter', 'by time']) {
    (await waitForSlot('job')).grant();
    t.deepEqual((await nextCall()).inputs, [text]);
  }
});

test('a failed call is repeated in the class of the inputs that still wait for it', async (t) => {
  const { embed, waiting, waitForSlot, nextCall } = createTestScheduler(t, { maxInputs: 100 });
  const lines = textsOf('line', 20);
  const cancellation = new AbortController();
  const cancelled = embed(['text'], { accountId: 'caller', signal: cancellation.signal });
  const served = embed(lines, background(lines));
  await waitForSlot('interactive');
  (await waitForSlot('batch')).grant();
  (await nextCall()).fail(new UpstreamError('unavailable', 'no'));
  const again = await waitForSlot('interactive');
  t.deepEqual(
    waiting.map(({ callClass }) => callClass),
    ['interactive'],
  );
  again.grant();
  const repeated = await nextCall();
  cancellation.abort(new Error('left'));
  repeated.fail(new UpstreamError('unavailable', 'no'));
  (await waitForSlot('batch')).grant();
  t.true('error' in (await cancelled).outcomes[0]!);
  const call = await nextCall();
  t.deepEqual(call.inputs, lines);
  call.respond();
  t.is((await served).outcomes.filter((outcome) => 'vector' in outcome).length, 20);
});

test('a text that a background input waits with does not wait with it if a caller requests it', async (t) => {
  const { embed, waitForSlot, nextCall } = createTestScheduler(t);
  void embed(['same'], { ...background(['same']), accountId: 'ann' });
  const served = embed(['same'], { accountId: 'ann' });
  (await waitForSlot('interactive')).grant();
  const call = await nextCall();
  t.deepEqual(call.inputs, ['same']);
  call.respond();
  t.true('vector' in (await served).outcomes[0]!);
});

test('if no route can be called for background inputs, they fail, and callers are not affected', async (t) => {
  const { embed, scheduler, waiting, waitForSlot } = createTestScheduler(t);
  const lines = textsOf('line', 3);
  const failed = embed(lines, background(lines));
  void embed(['text']);
  await waitForSlot('interactive');
  (await waitForSlot('batch')).refuse();
  const { outcomes, reachedModel } = await failed;
  t.true(outcomes.every((outcome) => 'error' in outcome));
  t.false(reachedModel);
  t.is(scheduler.waiting, 1);
  t.deepEqual(
    waiting.map(({ callClass }) => callClass),
    ['interactive'],
  );
});

test('when background inputs are cancelled, they ask for slots no more, and callers still do', async (t) => {
  const { embed, scheduler, waiting, waitForSlot } = createTestScheduler(t);
  const cancellation = new AbortController();
  const lines = textsOf('line', 3);
  void embed(lines, { ...background(lines), signal: cancellation.signal });
  void embed(['text']);
  await waitForSlot('batch');
  await waitForSlot('interactive');
  cancellation.abort(new Error('cancelled'));
  await setImmediate();
  t.is(scheduler.waiting, 1);
  t.deepEqual(
    waiting.map(({ callClass }) => callClass),
    ['interactive'],
  );
});
