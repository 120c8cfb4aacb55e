import { setImmediate as nextTurn } from 'node:timers/promises';

import test from 'ava';

import { createContext, createTarget } from '../../support/upstream-target.ts';
import { collectImages, createImageFinder } from '../../../workers/upstreams/collect-media.ts';
import type { ChatBody, LoadedMedia } from '../../../workers/upstreams/upstream.ts';

const toImagePart = (url: string): object => ({ type: 'image_url', image_url: { url } });
const toLoaded = (url: string): LoadedMedia => ({ mediaType: 'image/png', base64: `bytes of ${url}` });

function toBody(...urls: string[]): ChatBody {
  const content = [{ type: 'text', text: 'What is it?' }, ...urls.map(toImagePart)];
  return { messages: [{ role: 'user', content }] } as ChatBody;
}

test('each image in the messages is loaded once, and only if it is needed', async (t) => {
  const loadedUrls: string[] = [];
  const context = createContext({
    media: {
      reserve: () => Promise.resolve(),
      loadImage(url) {
        loadedUrls.push(url);
        return Promise.resolve(toLoaded(url));
      },
    },
  });
  const messages = [
    ...toBody('https://a.test/', 'data:b').messages,
    {
      role: 'tool',
      tool_call_id: 'x',
      content: [toImagePart('https://c.test/'), toImagePart('https://a.test/')],
    },
    { role: 'user', content: 'https://not-a-part.test/' },
    { role: 'assistant', content: null },
  ] as ChatBody['messages'];
  const all = await collectImages({ messages }, context, () => true);
  t.deepEqual(loadedUrls, ['https://a.test/', 'data:b', 'https://c.test/']);
  t.deepEqual(all.get('https://c.test/'), toLoaded('https://c.test/'));
  const some = await collectImages({ messages }, context, (url) => url.startsWith('data:'));
  t.deepEqual([...some.keys()], ['data:b']);
});

test('at most four images are loaded at a time', async (t) => {
  const waiting: (() => void)[] = [];
  const context = createContext({
    media: {
      reserve: () => Promise.resolve(),
      loadImage: (url) => new Promise((resolve) => void waiting.push(() => resolve(toLoaded(url)))),
    },
  });
  const urls = Array.from({ length: 10 }, (_, index) => `https://a.test/${index}`);
  const collecting = collectImages(toBody(...urls), context, () => true);
  for (const expected of [4, 4, 2]) {
    await nextTurn();
    t.is(waiting.length, expected);
    for (const resolve of waiting.splice(0)) resolve();
  }
  t.is((await collecting).size, 10);
});

test('the first failure aborts running loads and starts no more', async (t) => {
  const loadedUrls: string[] = [];
  const failure = new Error('no image');
  const aborted: unknown[] = [];
  const context = createContext({
    media: {
      reserve: () => Promise.resolve(),
      loadImage(url, signal) {
        loadedUrls.push(url);
        if (url.endsWith('/0')) return Promise.reject(failure);
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted.push(signal.reason);
            reject(new Error('aborted'));
          });
        });
      },
    },
  });
  const urls = Array.from({ length: 10 }, (_, index) => `https://a.test/${index}`);
  const error = await t.throwsAsync(collectImages(toBody(...urls), context, () => true));
  t.is(error, failure);
  t.is(loadedUrls.length, 4);
  t.deepEqual(aborted, [failure, failure, failure]);
});

test('images are loaded ahead only if all candidate upstreams need them, and each image once', async (t) => {
  const loadedUrls: string[] = [];
  const context = createContext({
    media: {
      reserve: () => Promise.resolve(),
      loadImage(url) {
        loadedUrls.push(url);
        return Promise.resolve(toLoaded(url));
      },
    },
  });
  const createCandidate = (needs: (url: string) => boolean) => ({
    upstream: { needsImageBytes: (_target: unknown, url: string) => needs(url) },
    target: createTarget('m'),
  });
  const all = createCandidate(() => true);
  const embedded = createCandidate((url) => url.startsWith('data:'));
  const none = { upstream: {}, target: createTarget('m') };
  const find = createImageFinder(toBody('https://a.test/', 'data:b', 'https://a.test/'), context);
  t.is(find([all, none]), null);
  await find([all, embedded])?.();
  t.deepEqual(loadedUrls, ['data:b']);
  t.is(find([embedded]), null);
  await find([all])?.();
  t.deepEqual(loadedUrls, ['data:b', 'https://a.test/']);
  t.is(find([all]), null);
});
