import test from 'ava';
import { describeItem, type BoardItem } from '../../../api/queue-board/describe-item.ts';
import type { AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import { textOnlyFields } from '../../../shared/work/queue/job-kinds.ts';

const request: AdmittedRequest = {
  requestId: 'r1',
  accountId: 'a1',
  model: 'm1',
  pricing: { type: 'request', cost_per_request: 1 } as unknown as AdmittedRequest['pricing'],
  priceVersion: 'v1',
  admittedAtMs: 0,
  deadlineAtMs: 1_000,
  userIp: 'secret address',
  promptTokens: 3,
  user: 'secret user',
  claimHash: 'secret hash',
};
const shownRequest = {
  request: 'r1',
  account: 'a1',
  model: 'm1',
  prompt_tokens: 3,
  admitted_at: '1970-01-01T00:00:00.000Z',
  must_start_by: '1970-01-01T00:00:01.000Z',
};

const items: readonly (readonly [name: string, item: BoardItem, shown: object])[] = [
  [
    'an image',
    {
      v: 1,
      kind: 'image',
      operation: 'createImage',
      request,
      replyChannel: 'secret channel',
      prompt: 'secret prompt',
      negativePrompt: 'secret',
      n: 2,
      size: 'secret',
      quality: 'secret',
      style: 'secret',
      responseFormat: 'url',
      ...textOnlyFields,
    },
    {
      operation: 'createImage',
      images: 2,
      prompt_characters: 13,
      input_images: 0,
      has_mask: false,
      ...shownRequest,
    },
  ],
  [
    'a batch of texts',
    {
      v: 1,
      kind: 'embedding',
      model: 'm1',
      replyChannel: 'secret',
      parts: [{ request, inputs: ['secret', 'secret'], inputTokens: [1, 1], dimensions: null }],
    },
    { texts: 2, ...shownRequest },
  ],
  [
    'a stored job',
    { v: 1, stored: 'r1', bytes: 70_000, replyChannel: 'secret', requests: [request] },
    { stored_bytes: 70_000, ...shownRequest },
  ],
  [
    'a mail',
    { sealed: 'secret', expiresAt: 1_000 },
    { encrypted_characters: 6, expires_at: '1970-01-01T00:00:01.000Z' },
  ],
  [
    'a webhook',
    { v: 1, jobId: 'j1', accountId: 'a1', url: 'https://secret.example/', event: 'job.succeeded' },
    { event: 'job.succeeded', job: 'j1', account: 'a1' },
  ],
  ['an item of another kind', { kind: 'other', text: 'secret' } as unknown as BoardItem, { unknown: true }],
  ['an item without fields', { kind: 'image', prompt: 'secret' } as unknown as BoardItem, { unknown: true }],
];

for (const [name, item, shown] of items) {
  test(`${name} is described by ids, sizes and times, without what callers wrote`, (t) => {
    t.deepEqual(describeItem(item), shown);
    t.notRegex(JSON.stringify(describeItem(item)), /secret/);
  });
}

test('of a large batch, only the first requests are listed', (t) => {
  const part = { request, inputs: ['x'], inputTokens: [1], dimensions: null };
  const parts = Array.from({ length: 1_000 }, () => part);
  const shown = describeItem({ v: 1, kind: 'embedding', model: 'm1', replyChannel: '', parts });
  t.is(shown['requests'], 1_000);
  const first = shown['first_requests'] as object[];
  t.is(first.length, 20);
  t.deepEqual(first[0], shownRequest);
});
