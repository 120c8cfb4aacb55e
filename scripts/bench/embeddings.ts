import { uniqueMark, type Scenario, type VendorName } from './scenario.ts';

const dimensions = 1536;

/** As users of search send them; no text comes twice, so nothing can be shared between calls. */
const input = `Passage ${uniqueMark}: the committee approved the budget for the new library in its session of May.`;

function describe(vendor: VendorName, format: 'base64' | 'float'): Scenario {
  return {
    name: `embeddings-${vendor}-${format}`,
    group: 'embeddings',
    title: `Embeddings, one input a call, ${format}`,
    callers: 512,
    vendor,
    path: '/embeddings',
    body: { input, encoding_format: format },
    models: { direct: 'text-embedding-sim', gateway: `bench-embedding-${vendor}` },
    expects: { kind: 'embeddings', inputs: 1, dimensions, format },
  };
}

export const embeddingScenarios: readonly Scenario[] = [
  describe('busy', 'base64'),
  describe('busy', 'float'),
  describe('instant', 'base64'),
  describe('instant', 'float'),
];
