import test from 'ava';

import { deriveVector } from '../../../../scripts/vendor-simulator/vectors.ts';
import {
  dig,
  digText,
  digList,
  type Json,
  readJson,
  startDialectClients,
} from '../../../support/simulated-dialects.ts';

const ACTION = { action: 'batchEmbedContents' };
const embedRequest = (text: string, more: Json = {}): Json => ({
  model: 'models/emb',
  content: { parts: [{ text }] },
  ...more,
});

test('a batch gets the vectors of its texts, in order and with the requested length', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const requests = ['a', 'b', 'a'].map((text) => embedRequest(text, { outputDimensionality: 8 }));
  const answer = await readJson(await askGemini('emb', { requests }, ACTION));
  const vectors = digList(answer, 'embeddings').map((item) => Float32Array.from(item['values'] as number[]));
  t.deepEqual(
    vectors,
    ['a', 'b', 'a'].map((text) => deriveVector(text, 8)),
  );
  t.is(dig(answer, 'usageMetadata', 'promptTokenCount'), 3);
  const silent = await askGemini(
    'emb+nousage',
    { requests: [embedRequest('a', { model: 'models/emb+nousage' })] },
    ACTION,
  );
  t.false('usageMetadata' in (await readJson(silent)));
});

test('a batch that the vendor would reject is rejected', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const rejectedBatches: readonly [Json, RegExp][] = [
    [{ requests: [] }, /not specified/],
    [{ requests: Array.from({ length: 101 }, () => embedRequest('a')) }, /at most 100/],
    [{ requests: [embedRequest('a', { model: 'models/other' })] }, /requests\[0\]\.model/],
    [{ requests: [{ content: { parts: [{ text: 'a' }] } }] }, /requests\[0\]\.model/],
    [{ requests: [embedRequest('a'), embedRequest('')] }, /requests\[1\]\.content/],
    [{ requests: [embedRequest('a', { outputDimensionality: 0 })] }, /output_dimensionality/],
    [{ requests: [embedRequest('a', { dimensions: 8 })] }, /Unknown name "dimensions"/],
  ];
  for (const [body, words] of rejectedBatches) {
    const response = await askGemini('emb', body, ACTION);
    t.is(response.status, 400);
    t.regex(digText(await readJson(response), 'error', 'message'), words);
  }
  const full = Array.from({ length: 100 }, () => embedRequest('a', { outputDimensionality: 4 }));
  t.is((await askGemini('emb', { requests: full }, ACTION)).status, 200);
});

test('a text marked for rejection is rejected', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const embed = async (text: string): Promise<number> =>
    (
      await askGemini(
        'emb+poison',
        { requests: [embedRequest(text, { model: 'models/emb+poison' })] },
        ACTION,
      )
    ).status;
  t.is(await embed('a drop of poison'), 400);
  t.is(await embed('a drop of water'), 200);
});
