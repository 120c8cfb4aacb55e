import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import sharp from 'sharp';
import { makeManyFrames, makeNoisyWebp } from './hostile-images.ts';
import {
  chatPath,
  createText,
  editPath,
  embeddingPath,
  keepSending,
  open,
  read,
  send,
  sendUnread,
  toBody,
  type BenchRequest,
} from './requests.ts';
import { chatSlots, hangingHost, models, type FairnessTarget } from './scenario.ts';

/** Resolves when the attack has reached its full effect. It continues until its process exits. */
type Attack = (target: FairnessTarget) => Promise<void>;

const neverAborted = new AbortController().signal;

/** Time after the last request was opened until all buffers on the path are full. */
const fillMs = 3_000;
/** Number of streams to store, 160 MB in total. Fewer are stored if the time below runs out. */
const storedStreams = 24;
const storedStreamsMs = 40_000;
/** Time to upload half a gigabyte. */
const uploadMs = 20_000;
/** Time for a flood to start. */
const floodMs = 1_500;

const createChat = (model: string, content: unknown, stream = true): Buffer =>
  toBody({ model, stream, messages: [{ role: 'user', content }] });

/** Creates a body of 78 MB: 2048 inputs, each of the maximum length. */
const createLargeBody = (): Buffer =>
  toBody({ model: models.vectors, input: Array.from({ length: 2_048 }, () => 'bread '.repeat(6_350)) });

const createInputs = (count: number): string[] => Array.from({ length: count }, createText);

/** @param green 0 to 255. Makes images differ, because identical images in a request are checked only once. */
export async function createLargeImage(green: number): Promise<string> {
  const side = 7_000;
  const background = { r: 51, g: green, b: 153 };
  const options = { width: side, height: side, channels: 3, background } as const;
  // An interlaced image cannot be decoded row by row, which makes it the slowest.
  const bytes = await sharp({ create: options }).png({ progressive: true }).toBuffer();
  return `data:image/png;base64,${bytes.toString('base64')}`;
}

export const createImageChat = (urls: readonly string[]): Buffer =>
  createChat(models.vision, [
    { type: 'text', text: 'What is this?' },
    ...urls.map((url) => ({ type: 'image_url', image_url: { url } })),
  ]);

/** Sends this many short chats, a few at a time. */
async function sendChats(
  target: FairnessTarget,
  apiKey: string,
  count: number,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  let remaining = count;
  const sendNext = async (): Promise<void> => {
    while (remaining > 0) {
      remaining -= 1;
      const body = createChat(models.chat, createText(), false);
      const { status } = await send(target, { path: chatPath, apiKey, body, headers }, neverAborted);
      if (status >= 300) throw new Error(`HTTP ${status} to a chat that prepares the attack`);
    }
  };
  await Promise.all(Array.from({ length: 16 }, sendNext));
}

/**
 * Reads a page on 120 connections of each attacking account.
 * @param prepare makes the rows of the page
 * @param isFull whether the page has all its rows
 */
async function readPages(
  target: FairnessTarget,
  path: string,
  prepare: (apiKey: string) => Promise<void>,
  isFull: (page: string) => boolean,
): Promise<void> {
  const { attacker, moreAttackers } = target.keys;
  const apiKeys = [attacker, ...moreAttackers];
  for (const apiKey of apiKeys) {
    await prepare(apiKey);
    while (!isFull((await read(target, { path, apiKey })).text)) await delay(200);
  }
  for (const apiKey of apiKeys) keepSending(120, () => read(target, { path, apiKey }));
  await delay(floodMs);
}

const readJobLists: Attack = (target) =>
  readPages(
    target,
    '/jobs?page_size=100',
    (apiKey) => sendChats(target, apiKey, 100, { prefer: 'respond-async' }),
    (page) => page.split('"object":"job"').length > 100 && !page.includes('"status":"active"'),
  );

const readRequestLogs: Attack = (target) =>
  readPages(
    target,
    '/users/request_logs',
    (apiKey) => sendChats(target, apiKey, 320, {}),
    (page) => page.split('"request_id"').length > 300,
  );

export const createEdit = (imageUrl: string): Buffer =>
  toBody({ model: models.edits, prompt: createText(), image_url: imageUrl });

export const attacks: Readonly<Record<string, Attack>> = {
  async slots(target) {
    const { attacker: apiKey } = target.keys;
    const streams = Array.from({ length: chatSlots }, () =>
      sendUnread(target, { path: chatPath, apiKey, body: createChat(models.steadyChat, createText()) }),
    );
    await Promise.race([Promise.all(streams), delay(2 * fillMs)]);
    await delay(fillMs);
  },

  async dimensions(target) {
    const { attacker: apiKey } = target.keys;
    const create = (index: number): BenchRequest => ({
      path: embeddingPath,
      apiKey,
      body: toBody({ model: models.vectors, dimensions: (index % 300) + 1, input: createText() }),
    });
    keepSending(300, (index) => send(target, create(index), neverAborted));
    await delay(floodMs);
  },

  async images(target) {
    const { attacker: apiKey } = target.keys;
    const imageUrls: string[] = [];
    for (let i = 0; i < 6; i++) imageUrls.push(await createLargeImage(i));
    const body = createImageChat(imageUrls);
    keepSending(8, () => send(target, { path: chatPath, apiKey, body }, neverAborted));
    await delay(floodMs);
  },

  async links(target) {
    const { attacker: apiKey } = target.keys;
    const create = (): Buffer => createImageChat([`https://${hangingHost}/${randomUUID()}.png`]);
    keepSending(25, () => send(target, { path: chatPath, apiKey, body: create() }, neverAborted));
    await delay(floodMs);
  },

  async replays(target) {
    const { attacker: apiKey } = target.keys;
    const messages = [{ role: 'user', content: createText() }];
    // One response with four choices of 6.5 MB each.
    const body = toBody({ model: models.wideChat, n: 4, messages });
    const request = { path: chatPath, apiKey, body, headers: { 'idempotency-key': randomUUID() } };
    const { status, text } = await send(target, request, neverAborted);
    if (status !== 200 || text.length < 25_000_000)
      throw new Error(`the response to replay is HTTP ${status} with ${text.length} bytes`);
    const replays = Array.from({ length: 60 }, () => sendUnread(target, request));
    await Promise.race([Promise.all(replays), delay(2 * fillMs)]);
  },

  async 'slow-bodies'(target) {
    const { attacker: apiKey } = target.keys;
    // Seven uploads together fill the 512 MB that all request bodies may take.
    const body = createLargeBody().subarray(0, Math.floor(512_000_000 / 7));
    const heldBackBytes = 100;
    const uploads = Array.from({ length: 7 }, async () => {
      const upload = open(target, { path: embeddingPath, apiKey, body });
      await new Promise<void>((resolve) => {
        upload.on('close', resolve);
        upload.write(body.subarray(0, -heldBackBytes), () => resolve());
      });
      let at = body.length - heldBackBytes;
      setInterval(() => upload.write(body.subarray(at, (at += 1))), 20_000);
    });
    await Promise.race([Promise.all(uploads), delay(uploadMs)]);
  },

  async 'penniless-bodies'(target) {
    const { penniless: apiKey } = target.keys;
    const body = createLargeBody();
    keepSending(6, () => send(target, { path: embeddingPath, apiKey, body }, neverAborted));
    await delay(floodMs);
  },

  async 'kept-streams'(target) {
    const { attacker: apiKey } = target.keys;
    const deadline = AbortSignal.timeout(storedStreamsMs);
    let remaining = storedStreams;
    const fill = async (): Promise<void> => {
      while (remaining > 0 && !deadline.aborted) {
        remaining -= 1;
        const headers = { 'idempotency-key': randomUUID() };
        const body = createChat(models.wideChat, createText());
        const { status } = await send(target, { path: chatPath, apiKey, body, headers }, deadline);
        // The account has reached its limit.
        if (status !== 200) return;
      }
    };
    // Ignore streams that do not finish in time.
    await Promise.all(Array.from({ length: 4 }, () => fill().catch(() => undefined)));
  },

  async 'merged-embeddings'(target) {
    const { attacker: apiKey } = target.keys;
    const create = (): Buffer => toBody({ model: models.vectors, input: createInputs(2_048) });
    keepSending(16, () => send(target, { path: embeddingPath, apiKey, body: create() }, neverAborted));
    await delay(floodMs);
  },

  'job-lists': readJobLists,
  'job-lists-of-three': readJobLists,
  'request-logs': readRequestLogs,
  'request-logs-of-three': readRequestLogs,

  async queries(target) {
    const path = `/models?${'a&'.repeat(7_600)}`;
    keepSending(4, () => read(target, { path }), 0);
    await delay(floodMs);
  },

  async preferences(target) {
    const { penniless: apiKey } = target.keys;
    const headers = { prefer: `"${'\\"'.repeat(7_500)}\\` };
    const body = createChat(models.chat, createText());
    keepSending(8, () => send(target, { path: chatPath, apiKey, body, headers }, neverAborted), 0);
    await delay(floodMs);
  },

  async frames(target) {
    const url = `data:image/webp;base64,${(await makeManyFrames(110_000)).toString('base64')}`;
    const requests = [
      { path: editPath, body: createEdit(url) },
      { path: chatPath, body: createImageChat([url]) },
    ];
    for (const apiKey of [target.keys.attacker, ...target.keys.moreAttackers])
      keepSending(8, (i) => send(target, { ...requests[i % 2]!, apiKey }, neverAborted));
    await delay(floodMs);
  },

  async 'big-webp'(target) {
    const body = createEdit(`data:image/webp;base64,${(await makeNoisyWebp()).toString('base64')}`);
    for (const apiKey of [target.keys.attacker, ...target.keys.moreAttackers])
      keepSending(3, () => send(target, { path: editPath, apiKey, body }, neverAborted));
    await delay(floodMs);
  },
};
