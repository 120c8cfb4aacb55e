import { memoryScenario, uniqueMark, type Scenario, type VendorName } from './scenario.ts';

const dimensions = 1536;
const inputsOfLargeCall = 256;

/** As users of search send them; no text comes twice, so nothing can be shared between calls. */
const input = `Passage ${uniqueMark}: the committee approved the budget for the new library in its session of May.`;

const common = {
  group: 'embeddings',
  background: 0,
  requestsEach: null,
  path: '/embeddings',
} as const;

function describe(
  vendor: VendorName,
  format: 'base64' | 'float',
  inputs = 1,
): Pick<Scenario, 'vendor' | 'body' | 'models' | 'expects'> {
  return {
    vendor,
    body: {
      input: inputs === 1 ? input : Array.from({ length: inputs }, () => input),
      encoding_format: format,
    },
    models: { direct: 'text-embedding-sim', gateway: `bench-embedding-${vendor}` },
    expects: { kind: 'embeddings', inputs, dimensions, format },
  };
}

/** So many callers that the gateway can merge their calls, and must if the busy vendor is to serve them. */
const single = (vendor: VendorName, format: 'base64' | 'float'): Scenario => ({
  ...common,
  ...describe(vendor, format),
  name: `embeddings-${vendor}-${format}`,
  title: `Embeddings, one input a call, ${format}`,
  callers: 512,
});

/** Fewer than the vendor serves at once, so that nobody waits there, whichever way they come. */
const othersBeside = 4;

const alone: Scenario = {
  ...common,
  ...describe('busy', 'base64'),
  name: 'embeddings-alone-idle',
  title: 'Embeddings, one input a call, nobody else',
  callers: 1,
};

/** The vendor has room for all of them; but with batches under way, the gateway keeps a new one open for company. */
const beside: Scenario = {
  ...alone,
  name: 'embeddings-alone-window',
  title: `Embeddings, one input a call, beside ${othersBeside} others`,
  background: othersBeside,
};

const large: Scenario = {
  ...common,
  ...describe('busy', 'base64', inputsOfLargeCall),
  name: 'embeddings-large',
  title: `Embeddings, ${inputsOfLargeCall} inputs a call, base64`,
  callers: 32,
};

const vocabulary =
  'the old harbour waits for snow while green lamps count every ship that never came home'.split(' ');

/** Texts of so many words each, none alike. */
function writeTexts(wordCounts: readonly number[]): string[] {
  return wordCounts.map((count, nr) => {
    const words = Array.from({ length: count - 1 }, (_, i) => vocabulary[(nr + i * 5) % vocabulary.length]);
    return [uniqueMark, ...words].join(' ');
  });
}

/** The model that runs in the worker: there is no vendor to compare it with. */
const encoder = (name: string, title: string, texts: readonly string[]): Scenario => ({
  ...common,
  name: `embeddings-encoder-${name}`,
  title: `Local encoder, ${texts.length} inputs a call, ${title}`,
  callers: 32,
  // A call takes seconds where so many wait: of a few seconds, nothing could be told.
  requestsEach: 2,
  vendor: null,
  body: { input: texts, encoding_format: 'base64' },
  models: { gateway: 'use-lite-en-512' },
  expects: { kind: 'embeddings', inputs: texts.length, dimensions: 512, format: 'base64' },
});

const shortTexts = writeTexts(Array.from({ length: 64 }, (_, i) => 3 + (i % 4)));
const mixedTexts = writeTexts([3, 90, 5, 12, 4, 40, 8, 20, 6, 10, 60, 4, 15, 30, 5, 8]);

/** For what it leaves in memory: from a vendor that answers at once, so that as much as can be is under way. */
export const memoryLoad: Scenario = {
  ...large,
  ...describe('instant', 'base64', inputsOfLargeCall),
  name: memoryScenario,
  title: `Memory, ${inputsOfLargeCall} inputs a call, base64`,
  callers: 64,
};

export const embeddingScenarios: readonly Scenario[] = [
  single('busy', 'base64'),
  single('busy', 'float'),
  alone,
  beside,
  large,
  single('instant', 'base64'),
  single('instant', 'float'),
  encoder('short', 'a number and 2 to 5 words', shortTexts),
  encoder('mixed', 'a number and 2 to 89 words', mixedTexts),
];
