import test, { type ExecutionContext } from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { tinyPng } from '../../shared/contract/image-stream.ts';
import { readAmountCharged } from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What would change the vendor's price of an image, and not ours, is not ordered. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1" }
models:
  - { id: flat, type: image, context: 8192, input_modalities: [text, image], pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: vendor, model: gpt-image-flat }] }
  - { id: counted, type: image, context: 8192, input_modalities: [text, image], pricing: { prompt: 10, completion: 40 }, routes: [{ upstream: vendor, model: gpt-image-counted }] }
`;

let stack: TestStack;
let vendor: VendorSimulator;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

type Fields = Readonly<Record<string, string | number | boolean>>;
type Send = (account: TestAccount, fields: Fields) => Promise<Response>;

const postJson =
  (path: string, more: object = {}, headers: Readonly<Record<string, string>> = {}): Send =>
  (account, fields) =>
    fetch(`${stack.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ prompt: 'a red boat', ...more, ...fields }),
    });

const postForm: Send = (account, fields) => {
  const form = new FormData();
  for (const [name, value] of Object.entries({ prompt: 'a red boat', ...fields })) form.set(name, value);
  form.set('image', new Blob([Buffer.from(tinyPng, 'base64')], { type: 'image/png' }), 'a.png');
  const headers = { authorization: `Bearer ${account.apiKey}` };
  return fetch(`${stack.url}/v1/images/edits`, { method: 'POST', headers, body: form });
};

const input = { image: `data:image/png;base64,${tinyPng}` };
const ways: Readonly<Record<string, Send>> = {
  'a generation': postJson('/v1/images/generations'),
  'an edit': postJson('/v1/images/edits', input),
  'an edit as a form': postForm,
  'a job': postJson('/v1/images/generations', {}, { prefer: 'respond-async' }),
  'a job that edits': postJson('/v1/images/edits', input, { prefer: 'respond-async' }),
};

const requestsOf = (user: string) => vendor.requests.entries.filter(({ body }) => body?.['user'] === user);

for (const [what, send] of Object.entries(ways)) {
  test(`${what} of a quality or size that the price does not cover is a 422 that names what the model has, and orders nothing`, async (t) => {
    const account = await stack.createAccount();
    const user = `refused ${what}`;
    for (const [fields, param, message] of [
      [{ quality: 'high' }, 'quality', /must be omitted or auto: flat has only one quality/],
      [{ size: '8192x8192' }, 'size', /must be 1024x1024 or auto: flat supports no other size/],
    ] as const) {
      const response = await send(account, { model: 'flat', user, ...fields });
      t.is(response.status, 422);
      const { error } = (await response.json()) as {
        error: { param: string; message: string; code: string };
      };
      t.like(error, { param, code: 'validation_failed' });
      t.regex(error.message, message);
    }
    t.deepEqual(requestsOf(user), []);
    t.is(await readAmountCharged(stack, account.id, '100'), 0n);
  });
}

async function checkSent(t: ExecutionContext, user: string, expected: object): Promise<void> {
  const [sent] = await waitFor('the call of the vendor', () => {
    const requests = requestsOf(user);
    return requests.length > 0 ? requests : undefined;
  });
  t.like(sent!.body, expected);
  t.false('quality' in sent!.body!);
}

for (const quality of ['auto', 'standard']) {
  test(`the quality ${quality} and the size auto are accepted and not sent`, async (t) => {
    const account = await stack.createAccount();
    for (const name of ['a generation', 'a job']) {
      const user = `${quality} ${name}`;
      const response = await ways[name]!(account, { model: 'flat', quality, size: 'auto', user });
      t.true(response.ok, `${response.status}: ${await response.text()}`);
      await checkSent(t, user, { size: '1024x1024', n: 1 });
    }
    await waitFor(
      'the charges of both',
      async () => (await readAmountCharged(stack, account.id, '100')) === 2_000_000_000n,
    );
  });
}

for (const [model, previews] of [
  ['flat', 0],
  ['counted', 2],
] as const) {
  test(`previews are ${previews === 0 ? 'not ' : ''}ordered from the vendor if ${previews === 0 ? 'the price is fixed' : 'its tokens are charged'}`, async (t) => {
    const account = await stack.createAccount();
    const user = `previews ${model}`;
    const fields = { model, stream: true, partial_images: 2, user };
    const response = await ways['a generation']!(account, fields);
    t.is(response.status, 200);
    const text = await response.text();
    t.is(text.split('event: image_generation.partial_image').length - 1, previews);
    t.is(text.split('event: image_generation.completed').length - 1, 1);
    const [sent] = requestsOf(user);
    t.is(sent!.body!['partial_images'], previews === 0 ? undefined : previews);
  });
}
