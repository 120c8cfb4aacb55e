import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { makeManyFrames } from '../../../scripts/bench/suites/fairness/hostile-images.ts';
import { createImageChecker } from '../../../workers/media/check-image.ts';
import { Decoders, type ImageOrigin } from '../../../workers/media/decoders.ts';
import { createImageReencoder } from '../../../workers/media/reencode-image.ts';
import { makeBlackPng } from '../../support/make-black-png.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Images are decoded in processes that can be killed, and nobody waits for the slow images of others. */

function open(t: ExecutionContext, timeoutMs?: number) {
  const logged: [object, string][] = [];
  const log = { error: (fields: object, text: string) => logged.push([fields, text]) };
  const decoders = new Decoders(log as never, timeoutMs);
  t.teardown(() => decoders.close());
  const reencodeImage = createImageReencoder(decoders);
  const reencode = (
    bytes: Buffer,
    {
      accountId = 'a',
      signal = new AbortController().signal,
      origin = 'caller',
    }: { accountId?: string; signal?: AbortSignal; origin?: ImageOrigin } = {},
  ) => reencodeImage(bytes, { accountId, signal, origin, waitMs: 600_000, format: null, quality: null });
  return { logged, reencode, check: createImageChecker(decoders), pids: () => decoders.pids };
}

/** Takes seconds to decode. */
const slow = makeBlackPng(7_000, 7_000, 7_000);
const small = makeBlackPng(10, 10, 10);

/** Pids of a process's children that decode images. */
function listProcesses(parent: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const isChild =
        readFileSync(`/proc/${name}/stat`, 'latin1').split(') ')[1]!.split(' ')[1] === String(parent);
      const isImageProcess = readFileSync(`/proc/${name}/cmdline`, 'latin1').includes('image-process');
      return isChild && isImageProcess ? [Number(name)] : [];
    } catch {
      // Not a process, or one that has just ended.
      return [];
    }
  });
}

const onLinux = process.platform === 'linux' ? test.serial : test.serial.skip;

test.serial('an image that takes too long is said to have taken too long, not to be damaged', async (t) => {
  const { reencode, check } = open(t, 50);
  const late = { problem: 'took too long to decode. Send it with fewer pixels, or as a JPEG' };
  t.deepEqual(await reencode(slow), late);
  t.deepEqual<unknown, unknown>(await check(slow, 'a', new AbortController().signal), late);
  t.deepEqual(await reencode(slow, { origin: 'vendor' }), late);
});

onLinux('when its caller disconnects, the process that decodes its image is killed', async (t) => {
  const { reencode, pids } = open(t);
  t.true('bytes' in (await reencode(small)));
  const [idle] = pids();
  const caller = new AbortController();
  const cancelled = reencode(slow, { signal: caller.signal });
  const reason = new Error('gone');
  caller.abort(reason);
  t.is(await t.throwsAsync(cancelled), reason);
  // The idle process had taken the image. It was killed, and its successor works.
  t.false(pids().includes(idle!));
  t.true('bytes' in (await reencode(small)));
});

onLinux(
  'a process that is killed from outside fails one image, which is logged, and the next is decoded',
  async (t) => {
    const { logged, reencode, pids } = open(t);
    const failing = reencode(slow);
    const pid = await waitFor('a process to decode', () => pids()[0]);
    process.kill(pid, 'SIGKILL');
    const failed = await failing;
    t.regex('problem' in failed ? failed.problem : '', /the decoder failed or ran out of memory/);
    t.is(logged[0]?.[1], 'image process: ended unexpectedly');
    t.like(logged[0]?.[0], { pid, exitSignal: 'SIGKILL' });
    t.true('bytes' in (await reencode(small)));
  },
);

onLinux('image processes have no environment, lower priority and a limit of memory', async (t) => {
  const { reencode, pids } = open(t);
  await reencode(small);
  const [pid] = pids();
  t.false(readFileSync(`/proc/${pid}/environ`, 'latin1').includes('PATH='));
  t.regex(readFileSync(`/proc/${pid}/limits`, 'latin1'), /Max data size +1610612736 /);
  const niceness = Number(readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')[16]);
  const own = Number(readFileSync('/proc/self/stat', 'latin1').split(') ')[1]!.split(' ')[16]);
  t.true(niceness >= Math.min(19, Math.max(5, own)));
});

onLinux('when a worker is killed with -9 while it decodes, its image processes end', async (t) => {
  const program = `
    import { readFileSync } from 'node:fs';
    import { Decoders } from '${new URL('../../../workers/media/decoders.js', import.meta.url).href}';
    const bytes = Buffer.from(readFileSync(0, 'utf8'), 'base64');
    const decoders = new Decoders({ error: () => undefined });
    const options = { accountId: 'a', origin: 'caller', pixels: 1, signal: new AbortController().signal, waitMs: 1e6 };
    decoders.perform({ kind: 'check', bytes, type: 'image/png' }, options);
    console.log('decoding');
    setInterval(() => undefined, 1_000);
  `;
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  run.child.stdin!.end(slow.toString('base64'));
  const pid = await waitFor('a process to decode', () => listProcesses(run.child.pid!)[0]);
  run.child.kill('SIGKILL');
  await t.throwsAsync(run);
  await waitFor('the process to end', () => {
    try {
      return readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ');
    } catch {
      return true;
    }
  });
  t.pass();
});

test.serial(
  'small images of other accounts are decoded while large images of several accounts wait',
  async (t) => {
    const { check, reencode } = open(t);
    const ended: string[] = [];
    const stop = new AbortController();
    const hostile = ['b', 'c', 'd'].flatMap((accountId) =>
      [1, 2, 3, 4, 5].map(async () => {
        try {
          await reencode(slow, { accountId, signal: stop.signal });
          ended.push(accountId);
        } catch (error) {
          if (error !== stop.signal.reason) throw error;
        }
      }),
    );
    for (let i = 0; i < 3; i++) {
      t.true('pixels' in (await check(small, 'other', new AbortController().signal)));
      t.true('bytes' in (await reencode(small, { accountId: 'other', origin: 'vendor' })));
    }
    t.true(ended.length < hostile.length, `${ended.length} large images were first`);
    stop.abort(new Error('stop'));
    await Promise.all(hostile);
  },
);

test.serial(
  'images of vendors do not wait, even while their own account decodes as many as it may',
  async (t) => {
    const { reencode } = open(t);
    const stop = new AbortController();
    let ended = 0;
    const inputs = Array.from({ length: 6 }, async () => {
      try {
        await reencode(slow, { signal: stop.signal });
        ended += 1;
      } catch (error) {
        if (error !== stop.signal.reason) throw error;
      }
    });
    t.true('bytes' in (await reencode(small, { origin: 'vendor' })));
    t.true(ended < inputs.length);
    stop.abort(new Error('stop'));
    await Promise.all(inputs);
  },
);

test.serial('a WebP of 110 000 frames is refused without any process', async (t) => {
  const { check, reencode, pids } = open(t);
  const frames = await makeManyFrames(110_000);
  const tooMany = { problem: 'has more than 1000 frames' };
  t.deepEqual<unknown, unknown>(await check(frames, 'a', new AbortController().signal), tooMany);
  t.deepEqual(await reencode(frames), tooMany);
  t.deepEqual(pids(), []);
});

test.serial('a large WebP is made anew with its size', async (t) => {
  const { reencode } = open(t);
  const create = { width: 7_000, height: 7_000, channels: 3, background: 'red' } as const;
  const large = await sharp({ create }).webp({ effort: 0 }).toBuffer();
  t.like(await reencode(large), { width: 7_000, height: 7_000, contentType: 'image/webp' });
});
