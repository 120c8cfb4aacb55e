import { setImmediate as nextTurn } from 'node:timers/promises';

import test from 'ava';

import { createContext, createTarget } from '../../support/upstream-target.ts';
import { collectImages, createImageFinder } from '../../../workers/upstreams/collect-media.ts';
import type { ChatBody, LoadedMedia } from '../../../workers/upstreams/upstream.ts';

const imagePart = (url: string): object => ({ type: 'image_url', image_url: { url } });
const loadedAs = (url: string): LoadedMedia => ({ mediaType: 'image/png', base64: `bytes of ${url}` });

function createBody(...urls: string[]): ChatBody {
  const content = [{ type: 'text', text: 'What is it?' }, ...urls.map(imagePart)];
  return { messages: [{ role: 'user', content }] } as ChatBody;
}

test('each distinct image in all messages is loaded once, if its URL passes the filter', async (t) => {
  const loadedUrls: string[] = [];
  const context = createContext({
    media: {
      reserve: () => Promise.resolve(),
      loadImage(url) {
        loadedUrls.push(url);
        return Promise.resolve(loadedAs(url));
      },
    },
  });
  const messages = [
    ...createBody('https://a.test/', 'data:b').messages,
    {
      role: 'tool',
      tool_call_id: 'x',
      content: [imagePart('https://c.test/'), imagePart('https://a.test/')],
    },
    { role: 'user', content: 'https://not-a-part.test/' },
    { role: 'assistant', content: null },
  ] as ChatBody['messages'];
  const all = await collectImages({ messages }, context, () => true);
  t.deepEqual(loadedUrls, ['https://a.test/', 'data:b', 'https://c.test/']);
  t.deepEqual(all.get('https://c.test/'), loadedAs('https://c.test/'));
  const some = await collectImages({ messages }, context, (url) => url.startsWith('data:'));
  t.deepEqual([...some.keys()], ['data:b']);
});

test('at most four images are loaded at a time', async (t) => {
  const pendingLoads: (() => void)[] = [];
  const context = createContext({
    media: {
      reserve: () => Promise.resolve(),
      loadImage: (url) => new Promise((resolve) => void pendingLoads.push(() => resolve(loadedAs(url)))),
    },
  });
  const urls = Array.from({ length: 10 }, (_, index) => `https://a.test/${index}`);
  const collecting = collectImages(createBody(...urls), context, () => true);
  for (const concurrentLoads of [4, 4, 2]) {
    await nextTurn();
    t.is(pendingLoads.length, concurrentLoads);
    for (const resolve of pendingLoads.splice(0)) resolve();
  }
  t.is((await collecting).size, 10);
});

test('the first failure aborts the loads in flight and starts no others', async (t) => {
  const loadedUrls: string[] = [];
  const failure = new Error('no picture');
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
  const error = await t.throwsAsync(collectImages(createBody(...urls), context, () => true));
  t.is(error, failure);
  t.is(loadedUrls.length, 4);
  t.deepEqual(aborted, [failure, failure, failure]);
});

test('preloading covers the images that every candidate upstream needs as bytes, each once', async (t) => {
  const loadedUrls: string[] = [];
  const context = createContext({
    media: {
      reserve: () => Promise.resolve(),
      loadImage(url) {
        loadedUrls.push(url);
        return Promise.resolve(loadedAs(url));
      },
    },
  });
  const createCandidate = (wants: (url: string) => boolean) => ({
    upstream: { needsImageBytes: (_target: unknown, url: string) => wants(url) },
    target: createTarget('m'),
  });
  const all = createCandidate(() => true);
  const dataUrisOnly = createCandidate((url) => url.startsWith('data:'));
  const withoutImageBytes = { upstream: {}, target: createTarget('m') };
  const findMissing = createImageFinder(createBody('https://a.test/', 'data:b', 'https://a.test/'), context);
  t.is(findMissing([all, withoutImageBytes]), null);
  await findMissing([all, dataUrisOnly])?.();
  t.deepEqual(loadedUrls, ['data:b']);
  t.is(findMissing([dataUrisOnly]), null);
  await findMissing([all])?.();
  t.deepEqual(loadedUrls, ['data:b', 'https://a.test/']);
  t.is(findMissing([all]), null);
});
