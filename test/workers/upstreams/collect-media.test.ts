import { setImmediate } from 'node:timers/promises';

import test from 'ava';

import { collectImages } from '../../../workers/upstreams/collect-media.ts';
import type { ChatBody, LoadedMedia } from '../../../workers/upstreams/upstream.ts';
import { createContext } from '../../support/upstream-target.ts';

const all = (): boolean => true;

function show(...urls: string[]): ChatBody {
  const content = urls.map((url) => ({ type: 'image_url', image_url: { url } }));
  return { messages: [{ role: 'user', content: [{ type: 'text', text: 'look' }, ...content] }] };
}

const load = (url: string): LoadedMedia => ({ mediaType: 'image/png', base64: `of ${url}` });

test('each URL that is wanted is loaded once, whatever message shows it', async (t) => {
  const asked: string[] = [];
  const loadImage = (url: string): Promise<LoadedMedia> => {
    asked.push(url);
    return Promise.resolve(load(url));
  };
  const body: ChatBody = {
    messages: [
      { role: 'system', content: 'be brief' },
      ...show('a', 'b', 'a').messages,
      { role: 'assistant', content: null },
      ...show('c', 'b').messages,
    ],
  };
  const images = await collectImages(body, createContext({ media: { loadImage } }), (url) => url !== 'c');
  t.deepEqual(asked, ['a', 'b']);
  t.deepEqual(
    [...images],
    [
      ['a', load('a')],
      ['b', load('b')],
    ],
  );
});

test('no more than four are loaded at once', async (t) => {
  let running = 0;
  let most = 0;
  const loadImage = async (url: string): Promise<LoadedMedia> => {
    running += 1;
    most = Math.max(most, running);
    await setImmediate();
    running -= 1;
    return load(url);
  };
  const urls = Array.from({ length: 11 }, (_, index) => `u${index}`);
  const images = await collectImages(show(...urls), createContext({ media: { loadImage } }), all);
  t.is(images.size, 11);
  t.is(most, 4);
});

test('the first that fails ends the others, and is the error', async (t) => {
  const failure = new Error('not a picture');
  const signals: AbortSignal[] = [];
  const loadImage = async (url: string, signal: AbortSignal): Promise<LoadedMedia> => {
    signals.push(signal);
    await setImmediate();
    if (url === 'b') throw failure;
    return load(url);
  };
  const urls = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];
  const context = createContext({ media: { loadImage } });
  t.is(await t.throwsAsync(collectImages(show(...urls), context, all)), failure);
  const asked = signals.length;
  t.true(asked < urls.length);
  t.true(signals.every((signal) => signal.aborted));
  await setImmediate();
  t.is(signals.length, asked);
});

test('when the caller leaves, the reason is the caller’s', async (t) => {
  const controller = new AbortController();
  const reason = new Error('the caller left');
  const loadImage = (_url: string, signal: AbortSignal): Promise<LoadedMedia> =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  const context = createContext({ media: { loadImage }, signal: controller.signal });
  const collecting = collectImages(show('a', 'b'), context, all);
  controller.abort(reason);
  t.is(await t.throwsAsync(collecting), reason);
});
