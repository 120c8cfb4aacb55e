import { dist } from '../../../start/paths.ts';
import type { Programs } from '../../harness/programs.ts';
import { createAccount } from '../../harness/stack/accounts.ts';
import { chatModel, embeddingModel, openaiUpstream } from '../../harness/stack/catalog.ts';
import { startStack } from '../../harness/stack/stack.ts';
import { startVendors, type Vendor } from '../../harness/stack/vendors.ts';
import type { Settings } from '../../harness/suite.ts';
import {
  chatSlots,
  models,
  perCallMs,
  perInputMs,
  vectorSlots,
  type FairnessScenario,
  type FairnessTarget,
} from './scenario.ts';

export interface FairnessStack {
  readonly target: FairnessTarget;
  readonly pids: Readonly<Record<'api' | 'redis', number>>;
}

/** For vendor responses without `max_tokens`. Those of a wide model are then 6.5 MB long. */
const replyWords = 100;

/** Starts the product and a simulated vendor, with at least three accounts, for one scenario. */
export async function startFairnessStack(
  programs: Programs,
  settings: Settings,
  { name, moreAttackers = 0 }: FairnessScenario,
): Promise<FairnessStack> {
  const { vendor } = await startVendors(programs, 'simulator', {
    vendor: [
      ['--vectors', 'fast'],
      ['--reply-words', String(replyWords)],
      ['--per-call-ms', String(perCallMs)],
      ['--per-input-ms', String(perInputMs)],
    ].flat(),
  });
  const { gateway, env, pids } = await startStack(programs, {
    settings,
    catalog: createCatalog(vendor),
    accountCount: 2 + moreAttackers,
    nodeArguments: (role) =>
      role === 'worker' && name === 'links'
        ? ['--import', dist('scripts/bench/suites/fairness/hanging-hosts.js')]
        : [],
  });
  const [attacker = '', innocent = '', ...others] = gateway.apiKeys;
  const { apiKey: penniless } = await createAccount(env, '0');
  const keys = { attacker, innocent, penniless, moreAttackers: others };
  return { target: { host: gateway.host, port: gateway.port, keys }, pids };
}

function createCatalog(vendor: Vendor): object {
  // With this kind, images in data URIs are checked, too. Other kinds receive them unchanged.
  const vision = {
    kind: 'anthropic',
    baseUrl: vendor.url,
    apiKeys: ['any'],
    maxConcurrency: chatSlots,
    imageUrls: 'fetch',
  };
  const chat = (id: string, upstream: string, model: string) =>
    chatModel({ id, upstream, model, context: 1_000_000, maxOutputTokens: 100_000 });
  const edits = {
    id: models.edits,
    type: 'image',
    context: 8192,
    input_modalities: ['text', 'image'],
    pricing: { type: 'image', cost_per_image: 0.01 },
    routes: [{ upstream: 'chat', model: 'gpt-image-sim' }],
  };
  return {
    upstreams: {
      chat: openaiUpstream(vendor, chatSlots),
      vision,
      vectors: openaiUpstream(vendor, vectorSlots),
    },
    models: [
      chat(models.chat, 'chat', 'gpt-sim'),
      chat(models.wideChat, 'chat', 'gpt-wide'),
      chat(models.steadyChat, 'chat', 'gpt-wide+drip-30'),
      chat(models.vision, 'vision', 'claude-sim'),
      embeddingModel({ id: models.vectors, upstream: 'vectors', model: 'text-embedding-sim' }),
      edits,
    ],
  };
}
