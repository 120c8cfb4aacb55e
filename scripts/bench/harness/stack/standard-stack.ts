import type { Programs } from '../programs.ts';
import { chatModel, embeddingModel, openaiUpstream } from './catalog.ts';
import { startStack, type Stack, type StackOptions } from './stack.ts';
import { startVendors, type Vendor } from './vendors.ts';

/** Words of a simulated chat. Each counts as a token. */
export const replyTokens = 50;

/** Simulated vendors, each in a separate process: one responds immediately, one as slowly as a real vendor. */
export const standardVendors = {
  instant: { arguments: [], maxConcurrency: 1024, text: 'immediately' },
  busy: {
    arguments: ['--per-call-ms', '30', '--per-input-ms', '0.2', '--max-concurrency', '8'],
    maxConcurrency: 8,
    text: 'in 30 ms + 0.2 ms per input, 8 concurrent calls',
  },
} as const;
export type StandardVendor = keyof typeof standardVendors;

/** The stack of most suites, with models for chats and embeddings of simulated vendors, and the built-in encoder. */
export interface StandardStack extends Stack {
  readonly vendors: Readonly<Record<StandardVendor, Vendor>>;
}

export async function startStandardStack(
  programs: Programs,
  settings: StackOptions['settings'],
): Promise<StandardStack> {
  const argumentsOf = (name: StandardVendor): string[] => [
    '--vectors',
    'fast',
    '--reply-words',
    String(replyTokens),
    ...standardVendors[name].arguments,
  ];
  const vendors = await startVendors(programs, 'simulator', {
    instant: argumentsOf('instant'),
    busy: argumentsOf('busy'),
  });
  const stack = await startStack(programs, { settings, catalog: createCatalog(vendors) });
  return { ...stack, vendors };
}

/** The model for embeddings of a vendor, at the gateway. */
export const embeddingModelOf = (vendor: StandardVendor): string => `bench-embedding-${vendor}`;

function createCatalog(vendors: StandardStack['vendors']): object {
  const { instant, busy } = standardVendors;
  const encoder = {
    id: 'use-lite-en-512',
    type: 'embedding',
    context: 8192,
    dimensions: { default: 512, adjustable: false },
    pricing: { type: 'tokens', in_cost_per_million: 10 },
    routes: [{ upstream: 'builtin', model: 'use-lite-en-512' }],
  };
  const embedding = (upstream: StandardVendor) =>
    embeddingModel({ id: embeddingModelOf(upstream), upstream, model: 'text-embedding-sim' });
  return {
    upstreams: {
      instant: openaiUpstream(vendors.instant, instant.maxConcurrency),
      busy: openaiUpstream(vendors.busy, busy.maxConcurrency),
      builtin: { kind: 'builtin' },
    },
    models: [
      chatModel({ id: 'bench-chat', upstream: 'instant', model: 'gpt-sim' }),
      embedding('instant'),
      embedding('busy'),
      encoder,
    ],
  };
}
