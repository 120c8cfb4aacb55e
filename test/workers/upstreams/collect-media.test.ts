import { setImmediate as nextTurn } from 'node:timers/promises';

import test from 'ava';

import { createContext, createTarget } from '../../support/upstream-target.ts';
import { collectImages, createImageFinder } from '../../../workers/upstreams/collect-media.ts';
import type { ChatBody, LoadedMedia } from '../../../workers/upstreams/upstream.ts';

const picture = (url: string): object => ({ type: 'image_url', image_url: { url } });
const loadedAs = (url: string): LoadedMedia => ({ mediaType: 'image/png', base64: `bytes of ${url}` });

function ask(...urls: string[]): ChatBody {
  const content = [{ type: 'text', text: 'What is it?' }, ...urls.map(picture)];
  return { messages: [{ role: 'user', content }] } as ChatBody;
}

test('each distinct image in all messages is loaded once, if its URL passes the filter', async (t) => {
  const asked: string[] = [];
  const context = createContext({
    media: {
      reserve: () => Promise.resolve(),
      loadImage(url) {
        asked.push(url);
        return Promise.resolve(loadedAs(url));
      },
    },
  });
  const messages = [
    ...ask('https://a.test/', 'data:b').messages,
    { role: 'tool', tool_call_id: 'x', content: [picture('https://c.test/'), picture('https://a.test/')] },
    { role: 'user', content: 'https://not-a-part.test/' },
    { role: 'assistant', content: null },
  ] as ChatBody['messages'];
  const all = await collectImages({ messages }, context, () => true);
  t.deepEqual(asked, ['https://a.test/', 'data:b', 'https://c.test/']);
  t.deepEqual(all.get('https://c.test/'), loadedAs('https://c.test/'));
  const some = await collectImages({ messages }, context, (url) => url.startsWith('data:'));
  t.deepEqual([...some.keys()], ['data:b']);
});

test('at most four images are loaded at a time', async (t) => {
  const waiting: (() => void)[] = [];
  const context = createContext({
    media: {
      reserve: () => Promise.resolve(),
      loadImage: (url) => new Promise((resolve) => void waiting.push(() => resolve(loadedAs(url)))),
    },
  });
  const urls = Array.from({ length: 10 }, (_, index) => `https://a.test/${index}`);
  const collecting = collectImages(ask(...urls), context, () => true);
  for (const atOnce of [4, 4, 2]) {
    await nextTurn();
    t.is(waiting.length, atOnce);
    for (const resolve of waiting.splice(0)) resolve();
  }
  t.is((await collecting).size, 10);
});

test('the first failure aborts the loads in flight and starts no others', async (t) => {
  const asked: string[] = [];
  const failure = new Error('no picture');
  const aborted: unknown[] = [];
  const context = createContext({
    media: {
      reserve: () => Promise.resolve(),
      loadImage(url, signal) {
        asked.push(url);
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
  const error = await t.throwsAsync(collectImages(ask(...urls), context, () => true));
  t.is(error, failure);
  t.is(asked.length, 4);
  t.deepEqual(aborted, [failure, failure, failure]);
});

test('preloading covers the images that every candidate upstream needs as bytes, each once', async (t) => {
  const asked: string[] = [];
  const context = createContext({
    media: {
      reserve: () => Promise.resolve(),
      loadImage(url) {
        asked.push(url);
        return Promise.resolve(loadedAs(url));
      },
    },
  });
  const createTaker = (wants: (url: string) => boolean) => ({
    upstream: { needsImageBytes: (_target: unknown, url: string) => wants(url) },
    target: createTarget('m'),
  });
  const all = createTaker(() => true);
  const embedded = createTaker((url) => url.startsWith('data:'));
  const none = { upstream: {}, target: createTarget('m') };
  const find = createImageFinder(ask('https://a.test/', 'data:b', 'https://a.test/'), context);
  t.is(find([all, none]), null);
  await find([all, embedded])?.();
  t.deepEqual(asked, ['data:b']);
  t.is(find([embedded]), null);
  await find([all])?.();
  t.deepEqual(asked, ['data:b', 'https://a.test/']);
  t.is(find([all]), null);
});
