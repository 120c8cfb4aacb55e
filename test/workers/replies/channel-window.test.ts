import { mock } from 'node:test';
import test from 'ava';
import { ChannelWindow } from '../../../workers/replies/channel-window.ts';

const KB = 1024;

test('at most 2 MB are in flight: the rest waits until enough bytes have been acknowledged', async (t) => {
  const window = new ChannelWindow();
  const marks: number[] = [];
  let sent = 0;
  while (window.whenWritable() === null) {
    const mark = window.send(100 * KB);
    sent += 100 * KB;
    if (mark !== null) marks.push(mark);
  }
  t.true(sent >= 2048 * KB && sent < 2148 * KB);
  t.deepEqual(marks.slice(0, 2), [300 * KB, 600 * KB]);
  const writable = window.whenWritable()!;
  t.is(window.whenWritable(), writable, 'all senders wait for the same promise');
  window.acknowledge(marks[0]!);
  await writable;
  t.is(window.whenWritable(), null);
});

test('bytes queued until the end of the event loop turn also use up the window', async (t) => {
  const window = new ChannelWindow();
  window.queue(1024 * KB);
  t.is(window.whenWritable(), null);
  window.queue(1024 * KB);
  const writable = window.whenWritable()!;
  window.acknowledge(window.send(2048 * KB)!);
  await writable;
  t.is(window.whenWritable(), null);
});

test.serial('a lost acknowledgement blocks sending for at most two seconds', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const window = new ChannelWindow();
  window.send(3 * 1024 * KB);
  const writable = window.whenWritable()!;
  mock.timers.tick(2_000);
  await writable;
  t.is(window.whenWritable(), null);
});
