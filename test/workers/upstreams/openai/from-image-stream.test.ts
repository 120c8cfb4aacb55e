import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';

import { makePng } from '../../../../scripts/vendor-simulator/tiny-png.ts';
import { DEFAULT_HTTP_TIMEOUTS } from '../../../../workers/upstreams/http-client.ts';
import { createOpenAiUpstream } from '../../../../workers/upstreams/openai/openai-upstream.ts';
import {
  type ImageResponse,
  type ImageCall,
  noUpstreamUsage,
  type PartialImage,
  UpstreamError,
} from '../../../../workers/upstreams/upstream.ts';
import { type Script, startScriptedVendor } from '../../../support/scripted-vendor.ts';
import { createContext, createImageCall, createTarget } from '../../../support/upstream-target.ts';

const call = createImageCall({ partialImages: 2 });
const [rough, fine, whole] = [makePng(1, 1, [1, 0, 0]), makePng(1, 1, [2, 0, 0]), makePng(1, 1, [3, 0, 0])];
const usage = { input_tokens: 50, output_tokens: 272, total_tokens: 322 };

function toEvent(type: string, image: Buffer, more: object = {}): string {
  return JSON.stringify({ type: `image_generation.${type}`, b64_json: image.toString('base64'), ...more });
}

interface StreamedCall {
  readonly response: Promise<ImageResponse>;
  readonly previews: PartialImage[];
}

async function stream(
  t: ExecutionContext,
  script: Script,
  more: Partial<ImageCall> = {},
): Promise<StreamedCall> {
  const vendor = await startScriptedVendor(script);
  const upstream = createOpenAiUpstream({ baseUrl: vendor.url });
  t.teardown(async () => {
    await vendor.close();
    await upstream.close();
  });
  const previews: PartialImage[] = [];
  const onPartial = async (preview: PartialImage): Promise<void> => {
    previews.push(preview);
  };
  const target = createTarget('gpt-image-1');
  const response = upstream.generateImages(target, { ...call, onPartial, ...more }, createContext());
  return { response, previews };
}

test('previews are passed on as they arrive, and the final image is returned with its usage', async (t) => {
  const requestBodies: unknown[] = [];
  const { response, previews } = await stream(t, (body) => {
    requestBodies.push(body);
    return [
      toEvent('partial_image', rough, { partial_image_index: 0 }),
      toEvent('partial_image', fine, { partial_image_index: 1 }),
      toEvent('partial_image', fine, { partial_image_index: 2 }),
      toEvent('completed', whole, { usage }),
      '[DONE]',
    ];
  });
  t.deepEqual(await response, {
    images: [{ bytes: whole, contentType: 'image/png', revisedPrompt: null }],
    calls: 1,
    usage: { ...noUpstreamUsage, promptTokens: 50, completionTokens: 272 },
  });
  t.deepEqual(
    previews,
    [rough, fine].map((bytes, index) => ({ bytes, contentType: 'image/png', index })),
    'no more than requested',
  );
  t.like(requestBodies[0], { stream: true, partial_images: 2 });
});

test('a non-streamed response is accepted, and so is a stream without previews', async (t) => {
  const nonStreamed = await stream(t, () => ({ data: [{ b64_json: whole.toString('base64') }], usage }));
  t.true((await nonStreamed.response).images[0]?.bytes.equals(whole));
  const plain = await stream(t, () => [toEvent('completed', whole)]);
  t.is((await plain.response).usage, null);
  t.deepEqual([...nonStreamed.previews, ...plain.previews], []);
});

test('an invalid preview is skipped, and an invalid final image is an error', async (t) => {
  const text = Buffer.from('not an image');
  const { response, previews } = await stream(t, () => [
    toEvent('partial_image', text),
    toEvent('partial_image', fine),
    toEvent('completed', whole),
  ]);
  t.is((await response).images.length, 1);
  t.deepEqual(
    previews.map(({ bytes, index }) => [bytes, index]),
    [[fine, 0]],
  );
  const broken = await stream(t, () => [toEvent('completed', text)]);
  t.like(await t.throwsAsync(broken.response), { failure: 'unavailable' });
});

test('if a stream ends, breaks off or is invalid before its final image, the call fails, and the vendor may still be making the image', async (t) => {
  async function* cut(): AsyncGenerator<string> {
    yield toEvent('partial_image', rough);
    throw new Error('the script breaks off its response');
  }
  for (const script of [
    () => [toEvent('partial_image', rough)],
    () => [],
    cut,
    () => ['nonsense'],
  ] as Script[]) {
    const { response } = await stream(t, script);
    t.like(await t.throwsAsync(response, { instanceOf: UpstreamError }), {
      failure: 'unavailable',
      mayStillRun: true,
    });
  }
});

test('an error within a stream, flat or nested, is reported as an error of the vendor', async (t) => {
  const error = { type: 'image_generation_user_error', code: 'content_policy_violation', message: 'No.' };
  for (const event of [
    { type: 'error', error },
    { ...error, type: 'error' },
  ]) {
    const { response } = await stream(t, () => [toEvent('partial_image', rough), JSON.stringify(event)]);
    t.like(await t.throwsAsync(response), { failure: 'rejected', message: 'No.', mayStillRun: false });
  }
});

test('nothing more is read from the vendor until the caller has taken a preview', async (t) => {
  const order: string[] = [];
  const { response } = await stream(
    t,
    () => [toEvent('partial_image', rough), toEvent('partial_image', fine), toEvent('completed', whole)],
    {
      async onPartial({ index }) {
        order.push(`offered ${index}`);
        await new Promise((resolve) => setImmediate(resolve));
        order.push(`taken ${index}`);
      },
    },
  );
  await response;
  t.deepEqual(order, ['offered 0', 'taken 0', 'offered 1', 'taken 1']);
});

test('a call cancelled while a preview is offered is aborted with the reason', async (t) => {
  const cancellation = new AbortController();
  const reason = new Error('the caller disconnected');
  const cuts: Promise<void>[] = [];
  const vendor = await startScriptedVendor((_body, _path, { cut }) => {
    cuts.push(cut);
    return (async function* () {
      yield toEvent('partial_image', rough);
      await cut;
    })();
  });
  const upstream = createOpenAiUpstream({ baseUrl: vendor.url });
  t.teardown(async () => {
    await vendor.close();
    await upstream.close();
  });
  const onPartial = async (): Promise<void> => cancellation.abort(reason);
  const context = createContext({ signal: cancellation.signal });
  const response = upstream.generateImages(createTarget('gpt-image-1'), { ...call, onPartial }, context);
  t.is(await t.throwsAsync(response), reason);
  await Promise.all(cuts);
  t.is(cuts.length, 1, 'the call to the vendor was cut off');
});

test('each preview has the same timeout as a whole response', async (t) => {
  const vendor = await startScriptedVendor(() =>
    (async function* () {
      yield toEvent('partial_image', rough);
      await delay(30);
      yield toEvent('completed', whole);
    })(),
  );
  // With the timeouts of a text stream this would time out.
  const timeouts = { ...DEFAULT_HTTP_TIMEOUTS, betweenChunksMs: 1 };
  const upstream = createOpenAiUpstream({ baseUrl: vendor.url, timeouts });
  t.teardown(async () => {
    await vendor.close();
    await upstream.close();
  });
  const { images } = await upstream.generateImages(createTarget('gpt-image-1'), call, createContext());
  t.is(images.length, 1);
});
