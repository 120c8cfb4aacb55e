import test from 'ava';
import { countTokens } from '../../shared/catalog/count-tokens.ts';
import { readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { chatWithUsage, startScriptedVendor, type ScriptedVendor } from '../support/scripted-vendor.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/** A vendor with the vocabulary of GPT-2, which has fewer long tokens than ours. */

const nanoPerToken = 1_000_000n;
const vendorEncoding = 'r50k_base';

let vendor: ScriptedVendor;
let stack: TestStack;
/** The prompt tokens of all vendor calls since a test last reset this to zero. */
let vendorTokens = 0;

test.before(async () => {
  vendor = await startScriptedVendor((body) => {
    const [message] = body['messages'] as { content: string }[];
    const prompt = countTokens(message!.content, vendorEncoding);
    vendorTokens += prompt;
    return chatWithUsage({ prompt_tokens: prompt, completion_tokens: 1, total_tokens: prompt + 1 });
  });
  const chat = (id: string, more: string): string =>
    `  - { id: ${id}, type: chat, context: 128000, ${more}pricing: { prompt: 1000, completion: 1000 }, routes: [{ upstream: vendor }] }`;
  stack = await startStack({
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1" } }
models:
${chat('unknown', '')}
${chat('known', 'tokenizer: r50k_base, ')}
`,
  });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

async function sendMany(balance: string, model: string, content: string) {
  vendorTokens = 0;
  const account = await stack.createAccount({ balance });
  const body = { model, messages: [{ role: 'user', content }], max_tokens: 1 };
  const statuses = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const response = await stack.post('/v1/chat/completions', account.apiKey, body);
      await response.text();
      return response.status;
    }),
  );
  await waitForNoReservation(stack, account.id);
  const succeeded = statuses.filter((status) => status === 200).length;
  return {
    succeeded,
    vendorCostNano: BigInt(vendorTokens) * nanoPerToken,
    chargedNano: await readAmountCharged(stack, account.id, balance),
  };
}

const texts = {
  spaces: ' '.repeat(4_000),
  Georgian: 'საქართველოს '.repeat(120),
  Malayalam: 'സ്വാതന്ത്ര്യത്തോടെ '.repeat(80),
  'words between spaces': `${' '.repeat(120)}a`.repeat(35),
};

for (const [name, content] of Object.entries(texts)) {
  test.serial(
    `the vendor’s cost is at most twice the charge for texts that its vocabulary splits into more tokens (${name})`,
    async (t) => {
      const { succeeded, vendorCostNano, chargedNano } = await sendMany('10', 'unknown', content);
      t.log(`${succeeded} succeeded, vendor cost ${vendorCostNano}, charged ${chargedNano}`);
      t.true(succeeded > 0);
      t.true(vendorCostNano <= 2n * chargedNano);
    },
  );
}

test.serial(
  'the reservation for a model with a configured tokenizer uses only the count of that tokenizer',
  async (t) => {
    const { succeeded, vendorCostNano, chargedNano } = await sendMany(
      '10',
      'known',
      'The cat sat on the mat. '.repeat(40),
    );
    t.is(succeeded, 30);
    t.is(chargedNano, vendorCostNano + 30n * nanoPerToken);
  },
);
