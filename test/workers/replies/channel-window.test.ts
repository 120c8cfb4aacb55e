import { mock } from 'node:test';
import test from 'ava';
import { ChannelWindow, createBurst } from '../../../workers/replies/channel-window.ts';

const KB = 1024;

test('at most 2 MB are in flight: the rest waits until enough bytes have been acknowledged', async (t) => {
  const window = new ChannelWindow();
  const marks: number[] = [];
  let sent = 0;
  while (window.whenWritable(createBurst()) === null) {
    window.queue(100 * KB, createBurst());
    const mark = window.send(100 * KB);
    sent += 100 * KB;
    if (mark !== null) marks.push(mark);
  }
  t.true(sent >= 2048 * KB && sent < 2148 * KB);
  t.deepEqual(marks.slice(0, 2), [200 * KB, 400 * KB]);
  const writable = [window.whenWritable(createBurst())!, window.whenWritable(createBurst())!];
  window.acknowledge(marks[0]!);
  await Promise.all(writable);
  t.is(window.whenWritable(createBurst()), null);
});

test('bytes queued until the end of the event loop turn also use up the window', async (t) => {
  const window = new ChannelWindow();
  window.queue(1024 * KB, createBurst());
  t.is(window.whenWritable(createBurst()), null);
  window.queue(1024 * KB, createBurst());
  const writable = window.whenWritable(createBurst())!;
  window.acknowledge(window.send(2048 * KB)!);
  await writable;
  t.is(window.whenWritable(createBurst()), null);
});

test('a response sends at most 256 KB until the receiver is known to have its first bytes; others go on', async (t) => {
  const window = new ChannelWindow();
  const [long, short] = [createBurst(), createBurst()];
  const marks: number[] = [];
  for (let i = 0; i < 4; i++) {
    t.is(window.whenWritable(long), null);
    window.queue(64 * KB, long);
    const mark = window.send(64 * KB);
    if (mark !== null) marks.push(mark);
  }
  const writable = window.whenWritable(long)!;
  window.queue(KB, short);
  t.is(window.whenWritable(short), null);
  window.send(KB);
  window.acknowledge(marks[0]!);
  await writable;
  window.queue(64 * KB, long);
  t.is(window.whenWritable(long), null);
});

test('a response of few bytes at a time never waits, however long it is', (t) => {
  const window = new ChannelWindow();
  const burst = createBurst();
  for (let i = 0; i < 10_000; i++) {
    t.is(window.whenWritable(burst), null);
    window.queue(KB, burst);
    const mark = window.send(KB);
    if (mark !== null) window.acknowledge(mark);
  }
});

test('a response continues on the next window of its channel', (t) => {
  const burst = createBurst();
  const lost = new ChannelWindow();
  lost.queue(512 * KB, burst);
  lost.send(512 * KB);
  t.not(lost.whenWritable(burst), null);
  lost.acknowledge(512 * KB);
  const window = new ChannelWindow();
  t.is(window.whenWritable(burst), null);
  window.queue(KB, burst);
  t.is(window.whenWritable(burst), null);
});

test('if nobody listens any more, waits end immediately', async (t) => {
  const window = new ChannelWindow();
  const burst = createBurst();
  window.queue(3 * 1024 * KB, burst);
  window.send(3 * 1024 * KB);
  const writable = window.whenWritable(burst)!;
  window.close();
  await writable;
  t.is(window.whenWritable(burst), null);
});

test('an acknowledgement for an earlier window of the channel is ignored', (t) => {
  const window = new ChannelWindow();
  const burst = createBurst();
  window.queue(512 * KB, burst);
  window.send(512 * KB);
  window.acknowledge(10 * 1024 * KB);
  t.not(window.whenWritable(burst), null);
  window.close();
});

test.serial('a lost acknowledgement blocks sending for at most two seconds', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const window = new ChannelWindow();
  window.queue(3 * 1024 * KB, createBurst());
  window.send(3 * 1024 * KB);
  const writable = window.whenWritable(createBurst())!;
  mock.timers.tick(2_000);
  await writable;
  t.is(window.whenWritable(createBurst()), null);
});
