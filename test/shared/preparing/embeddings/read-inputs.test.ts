import test from 'ava';
import { encode } from 'gpt-tokenizer/encoding/cl100k_base';
import { holdText } from '../../../../api/http/bodies/hold-text.ts';
import type { ApiContext, RequestState } from '../../../../api/http/request/context.ts';
import type { Services } from '../../../../api/services.ts';
import type { EmbeddingInput } from '../../../../shared/contract/embeddings.ts';
import { FairBudget } from '../../../../shared/fairness/fair-budget.ts';
import { CountingTurn } from '../../../../shared/catalog/count-tokens.ts';
import { readInputs } from '../../../../shared/preparing/embeddings/read-inputs.ts';

const limit = 8_192;
/** A token with the maximum number of characters. */
const longToken = encode(' '.repeat(128))[0]!;

function startRequest(capacity = 1_000_000_000) {
  const requestMemory = new FairBudget({ capacity });
  const closed = new AbortController();
  const state: Partial<RequestState> = {
    signal: closed.signal,
    holder: { accountId: 'account', keyHash: 'hash' },
  };
  let turns = 0;
  const countingTurn = new CountingTurn(() => {
    turns += 1;
  });
  const read = (input: EmbeddingInput) =>
    readInputs(input, {
      limit,
      countingTurn,
      holdText: (textBytes) =>
        holdText({ requestMemory } as unknown as Services, { state } as unknown as ApiContext, textBytes),
    });
  return { requestMemory, state, close: () => closed.abort(), read, countTurns: () => turns };
}

test('a text, a list of texts, a token array and a list of token arrays all become texts', async (t) => {
  const { read } = startRequest();
  const tokens = encode('two words');
  t.deepEqual(await read('a'), { texts: ['a'], sentTokens: null, isSingle: true });
  t.deepEqual(await read(['a', 'b']), { texts: ['a', 'b'], sentTokens: null, isSingle: false });
  t.deepEqual(await read(tokens), { texts: ['two words'], sentTokens: [2], isSingle: true });
  const several = { texts: ['two words', 'two'], sentTokens: [2, 1], isSingle: false };
  t.deepEqual(await read([tokens, tokens.slice(0, 1)]), several);
});

test('large token arrays are checked and decoded in slices that yield to the event loop', async (t) => {
  const many = startRequest();
  await many.read(Array.from({ length: 64 }, () => Array.from({ length: limit }, () => 1)));
  // Each of the two passes covers half a million tokens, at 32 thousand per slice.
  t.true(many.countTurns() >= 2 * 16, `${many.countTurns()} turns`);
});

test('a request with a million invalid tokens is rejected with the first of them, in slices that yield to the event loop', async (t) => {
  const { read, countTurns } = startRequest();
  const input = Array.from({ length: 128 }, () => Array.from({ length: limit }, () => -1));
  const error = await t.throwsAsync(read(input), {
    message: /^input\.0\.0: -1 is not .* \(and 1048575 more\)$/,
  });
  t.is((error as unknown as { issues: unknown[] }).issues.length, 20);
  t.true(countTurns() >= 32);
});

test('if decoded text is longer than its token array, memory for it is held until the response is sent', async (t) => {
  const tokens = Array.from({ length: 1_000 }, () => longToken);
  const { requestMemory, close, read } = startRequest();
  await read([tokens]);
  t.is(requestMemory.held, 128_000);
  close();
  t.is(requestMemory.held, 0);

  const narrow = startRequest(200_000);
  const othersShare = narrow.requestMemory.tryAcquire('another', 100_000)!;
  await t.throwsAsync(
    async () => {
      await narrow.read([tokens]);
    },
    { code: 'queue_full' },
  );
  t.is(narrow.requestMemory.held, othersShare.amount);
});

test('memory already held for the text of a body also covers the decoded text, and only the excess is reserved', async (t) => {
  const { requestMemory, state, read } = startRequest();
  const share = requestMemory.tryAcquire('account', 150_000)!;
  state.bodyMemory = { share, textBytes: 100_000 };
  await read([Array.from({ length: 700 }, () => longToken)]);
  t.is(share.amount, 150_000);
  await read([Array.from({ length: 1_000 }, () => longToken)]);
  t.is(share.amount, 150_000 + 28_000);
});
