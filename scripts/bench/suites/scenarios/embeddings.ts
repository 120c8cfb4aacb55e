import { uniqueMark } from '../../harness/load/request-writer.ts';
import { embeddingModelOf, type StandardVendor } from '../../harness/stack/standard-stack.ts';
import type { LoadScenario } from './load-scenario.ts';

const dimensions = 1536;
const inputsPerLargeCall = 256;

/** A typical search input. No text occurs twice, so calls cannot share work. */
const input = `Passage ${uniqueMark}: the committee approved the budget for the new library in its session of May.`;

const common = {
  group: 'embeddings',
  background: 0,
  requestsEach: null,
  path: '/embeddings',
} as const;

function describe(
  vendor: StandardVendor,
  format: 'base64' | 'float',
  inputs = 1,
): Pick<LoadScenario, 'vendor' | 'body' | 'models' | 'expects'> {
  return {
    vendor,
    body: {
      input: inputs === 1 ? input : Array.from({ length: inputs }, () => input),
      encoding_format: format,
    },
    models: { direct: 'text-embedding-sim', gateway: embeddingModelOf(vendor) },
    expects: { kind: 'embeddings', inputs, dimensions, format },
  };
}

/** Has enough callers for the gateway to merge their calls. Without merging, the busy vendor could not serve them. */
const single = (vendor: StandardVendor, format: 'base64' | 'float'): LoadScenario => ({
  ...common,
  ...describe(vendor, format),
  name: `embeddings-${vendor}-${format}`,
  title: `Embeddings, one input per call, ${format}`,
  callers: 512,
});

/** Below the vendor's concurrency limit, so that no request waits at the vendor, merged or not. */
const otherCallers = 4;

const alone: LoadScenario = {
  ...common,
  ...describe('busy', 'base64'),
  name: 'embeddings-alone-idle',
  title: 'Embeddings, one input per call, no other callers',
  callers: 1,
};

/**
 * The vendor has capacity for all calls. But while batches are in progress, the gateway waits for more inputs before it
 * sends another batch.
 */
const withOthers: LoadScenario = {
  ...alone,
  name: 'embeddings-alone-window',
  title: `Embeddings, one input per call, with ${otherCallers} other callers`,
  background: otherCallers,
};

const large: LoadScenario = {
  ...common,
  ...describe('busy', 'base64', inputsPerLargeCall),
  name: 'embeddings-large',
  title: `Embeddings, ${inputsPerLargeCall} inputs per call, base64`,
  callers: 32,
};

const vocabulary =
  'the old harbour waits for snow while green lamps count every ship that never came home'.split(' ');

/** Creates texts with the given numbers of words, all different. */
function writeTexts(wordCounts: readonly number[]): string[] {
  return wordCounts.map((count, index) => {
    const words = Array.from(
      { length: count - 1 },
      (_, i) => vocabulary[(index + i * 5) % vocabulary.length],
    );
    return [uniqueMark, ...words].join(' ');
  });
}

/** The model runs in the worker, so there is no vendor to compare it with. */
const encoder = (name: string, title: string, texts: readonly string[]): LoadScenario => ({
  ...common,
  name: `embeddings-encoder-${name}`,
  title: `Local encoder, ${texts.length} inputs per call, ${title}`,
  callers: 32,
  // With so many waiting callers, a call takes seconds, so measuring for a few seconds would be meaningless.
  requestsEach: 2,
  vendor: null,
  body: { input: texts, encoding_format: 'base64' },
  models: { gateway: 'use-lite-en-512' },
  expects: { kind: 'embeddings', inputs: texts.length, dimensions: 512, format: 'base64' },
});

const shortTexts = writeTexts(Array.from({ length: 64 }, (_, i) => 3 + (i % 4)));
const mixedTexts = writeTexts([3, 90, 5, 12, 4, 40, 8, 20, 6, 10, 60, 4, 15, 30, 5, 8]);

/** Many calls as large as possible. The vendor responds instantly, for maximum throughput. */
export const largeInstant: LoadScenario = {
  ...large,
  ...describe('instant', 'base64', inputsPerLargeCall),
};

export const embeddingScenarios: readonly LoadScenario[] = [
  single('busy', 'base64'),
  single('busy', 'float'),
  alone,
  withOthers,
  large,
  single('instant', 'base64'),
  single('instant', 'float'),
  encoder('short', 'a number and 2 to 5 words', shortTexts),
  encoder('mixed', 'a number and 2 to 89 words', mixedTexts),
];
