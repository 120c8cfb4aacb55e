import { dist } from '../../start/paths.ts';
import { createAccount, host, startGateway, startVendor } from '../gateway-processes.ts';
import type { Programs } from '../programs.ts';
import { startStores } from '../stores.ts';
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

const startTimeoutMs = 60_000;
/** For vendor responses without `max_tokens`. Those of a wide model are then 6.5 MB long. */
const replyWords = 100;

/** Starts the product and a simulated vendor, with three accounts, for one scenario. */
export async function startFairnessStack(
  programs: Programs,
  dir: string,
  { name, moreAttackers = 0 }: FairnessScenario,
  logLevel: string,
): Promise<FairnessStack> {
  const signal = AbortSignal.timeout(startTimeoutMs);
  const vendorArguments = [
    ['--vectors', 'fast'],
    ['--reply-words', String(replyWords)],
    ['--per-call-ms', String(perCallMs)],
    ['--per-input-ms', String(perInputMs)],
  ].flat();
  const [stores, vendor] = await Promise.all([
    startStores({ programs, dir, env: process.env, signal }),
    startVendor(programs, 'fairness', vendorArguments, process.env),
  ]);
  const { port, env, pids } = await startGateway({
    programs,
    dir,
    stores,
    catalog: createCatalog(vendor.url),
    logLevel,
    nodeArguments: (role) =>
      role === 'worker' && name === 'links'
        ? ['--import', dist('scripts/bench/fairness/hanging-hosts.js')]
        : [],
    signal,
  });
  const [attacker, innocent, penniless] = await Promise.all([
    createAccount(env),
    createAccount(env),
    createAccount(env, '0'),
  ]);
  const others = await Promise.all(Array.from({ length: moreAttackers }, () => createAccount(env)));
  const keys = {
    attacker: attacker.api_key,
    innocent: innocent.api_key,
    penniless: penniless.api_key,
    moreAttackers: others.map(({ api_key: apiKey }) => apiKey),
  };
  return { target: { host, port, keys }, pids: { api: pids.api, redis: stores.pids.redis } };
}

function createCatalog(vendorUrl: string): object {
  const upstream = (maxConcurrency: number) => ({
    kind: 'openai',
    baseUrl: `${vendorUrl}/v1`,
    maxConcurrency,
  });
  // With this kind, images in data URIs are checked, too. Other kinds receive them unchanged.
  const vision = {
    kind: 'anthropic',
    baseUrl: vendorUrl,
    apiKeys: ['any'],
    maxConcurrency: chatSlots,
    imageUrls: 'fetch',
  };
  const chat = (id: string, upstreamName: string, model: string) => ({
    id,
    type: 'chat',
    context: 1_000_000,
    max_output_tokens: 100_000,
    pricing: { type: 'tokens', prompt: 15, completion: 60 },
    routes: [{ upstream: upstreamName, model }],
  });
  const vectors = {
    id: models.vectors,
    type: 'embedding',
    context: 8192,
    dimensions: { default: 1536, adjustable: true },
    pricing: { type: 'tokens', in_cost_per_million: 2 },
    routes: [{ upstream: 'vectors', model: 'text-embedding-sim' }],
  };
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
      chat: upstream(chatSlots),
      vision,
      vectors: upstream(vectorSlots),
    },
    models: [
      chat(models.chat, 'chat', 'gpt-sim'),
      chat(models.wideChat, 'chat', 'gpt-wide'),
      chat(models.steadyChat, 'chat', 'gpt-wide+drip-30'),
      chat(models.vision, 'vision', 'claude-sim'),
      vectors,
      edits,
    ],
  };
}
