import { randomBytes } from 'node:crypto';
import test from 'ava';
import { AppError } from '../../../shared/contract/errors.ts';
import type { Receipt } from '../../../shared/work/settlement/finish-request.ts';
import { maxInlineBytes } from '../../../shared/work/queue/payload-limits.ts';
import { textOnlyFields, type ImageJob } from '../../../shared/work/queue/job-kinds.ts';
import { ImageStream } from '../../../workers/runs/image-stream.ts';
import { CallerGone, type RequestRun } from '../../../workers/runs/job-context.ts';
import { parseSse } from '../../support/sse-events.ts';

/** A streamed image is sent in small frames, at the pace of its reader. */

const receipt: Receipt = { costNano: 50_000_000n, free: false, durationMs: 1_200 };
const job = {
  operation: 'createImage',
  size: '1024x1024',
  quality: null,
  ...textOnlyFields,
} as unknown as ImageJob;

function createRun() {
  const abort = new AbortController();
  const texts: string[] = [];
  const ends: unknown[] = [];
  const waits = { writable: null as Promise<void> | null, reader: null as Promise<void> | null };
  const reply = {
    delta: (text: string) => void texts.push(text),
    result: () => void ends.push('result'),
    error: (error: { code: string }) => void ends.push(error.code),
    whenWritable: () => waits.writable,
  };
  const run = {
    reply,
    signal: abort.signal,
    whenResumed: () => waits.reader,
    cancelStalled: () => undefined,
  };
  return { run: run as unknown as RequestRun, texts, ends, waits, abort };
}

/** The size is neither a multiple of the frame size nor of three, so frames and base64 groups end unevenly. */
const bytes = randomBytes(200_002);
const image = { bytes, contentType: 'image/png', revisedPrompt: 'a "fox"' } as const;
const notContested = (): Promise<boolean> => Promise.resolve(false);

test('an image of any size is sent in frames of at most 64 KB, which form one event', async (t) => {
  const { run, texts, ends } = createRun();
  await new ImageStream(job, run).complete(image, null, receipt);
  t.true(texts.length > 4);
  t.true(texts.every((text) => Buffer.byteLength(text) <= maxInlineBytes));
  t.deepEqual(ends, ['result']);
  const { events } = parseSse(texts.join(''));
  t.like(events, [{ type: 'image_generation.completed', revised_prompt: 'a "fox"' }] as object[]);
  const [event] = events as unknown as { b64_json: string }[];
  t.true(Buffer.from(event!.b64_json, 'base64').equals(bytes));
});

test('no frames are sent while the channel is full or the reader has paused', async (t) => {
  const { run, texts, waits } = createRun();
  for (const wait of ['writable', 'reader'] as const) {
    let resume!: () => void;
    waits[wait] = new Promise((resolve) => (resume = resolve));
    const before = texts.length;
    const sending = new ImageStream(job, run).show({ ...image, index: 0 }, notContested);
    await new Promise((resolve) => setImmediate(resolve));
    t.is(texts.length, before + 1, wait);
    waits[wait] = null;
    resume();
    await sending;
    t.true(texts.length > before + 4, wait);
  }
});

test('nothing is sent to a disconnected caller; any other cancellation is reported to the caller', async (t) => {
  const disconnected = createRun();
  disconnected.abort.abort(new CallerGone());
  const stream = new ImageStream(job, disconnected.run);
  await stream.show({ ...image, index: 0 }, notContested);
  t.deepEqual(disconnected.texts, []);
  const connected = createRun();
  connected.abort.abort(new AppError('too_many_jobs'));
  await new ImageStream(job, connected.run).complete(image, null, receipt);
  t.deepEqual([connected.texts, connected.ends], [[], ['too_many_jobs']]);
});
