/** Servers with OpenAI's API that differ in what they accept. `compatible` is any other. */
export const openAiProfiles = [
  'openai',
  'mistral',
  'deepseek',
  'groq',
  'cerebras',
  'openrouter',
  'azure',
  'vllm',
  'ollama',
  'llamacpp',
  'tei',
  'compatible',
] as const;
export type OpenAiProfile = (typeof openAiProfiles)[number];

/** The profiles of vendors, by the ends of their host names. */
const profilesOfHosts: readonly (readonly [string, OpenAiProfile])[] = [
  ['api.openai.com', 'openai'],
  ['mistral.ai', 'mistral'],
  ['deepseek.com', 'deepseek'],
  ['groq.com', 'groq'],
  ['cerebras.ai', 'cerebras'],
  ['openrouter.ai', 'openrouter'],
  ['openai.azure.com', 'azure'],
  ['services.ai.azure.com', 'azure'],
  ['cognitiveservices.azure.com', 'azure'],
];

/** Servers that run these models with Mistral's own tokenizer and templates have Mistral's rules. */
const mistralFamily = /^(?:.*\/)?(?:open-)?(?:mistral|ministral|magistral|codestral|devstral|pixtral)/i;

/**
 * Returns the profile of a route's server: what the catalog says, or else the one of a known address, or else that of
 * the model's family, or else `compatible`.
 * @param model its name at the server
 */
export function findOpenAiProfile(
  configured: OpenAiProfile | null,
  baseUrl: string,
  model: string,
): OpenAiProfile {
  return configured ?? findByHost(baseUrl) ?? (mistralFamily.test(model) ? 'mistral' : 'compatible');
}

function findByHost(baseUrl: string): OpenAiProfile | null {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname.toLowerCase() : '';
  return profilesOfHosts.find(([end]) => host === end || host.endsWith(`.${end}`))?.[1] ?? null;
}

/** Sampling fields of vLLM, llama.cpp and OpenRouter. */
const openSampling = 'min_p repetition_penalty top_a top_k';
/** Fields that mean something at OpenAI alone. */
const openAiOnly = `metadata prediction prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier store
  verbosity`;
const media = 'audio modalities web_search_options';

/** Optional fields of a chat that a server rejects, or that mean nothing to it. docs/vendors.md has the same table. */
const unsupported: Readonly<Record<OpenAiProfile, string>> = {
  openai: openSampling,
  azure: openSampling,
  // Rejects whatever it does not know.
  mistral: `${openSampling} ${media} logit_bias logprobs metadata prompt_cache_key prompt_cache_options
    prompt_cache_retention safety_identifier store top_logprobs user verbosity`,
  deepseek: `${openAiOnly} ${openSampling} ${media} logit_bias n seed`,
  groq: `${openAiOnly} ${openSampling} ${media} logit_bias logprobs n top_logprobs`,
  cerebras: `${openAiOnly} ${openSampling} ${media} frequency_penalty logit_bias n presence_penalty`,
  openrouter: 'prompt_cache_options prompt_cache_retention safety_identifier store',
  vllm: openAiOnly,
  ollama: `${openAiOnly} ${media} logit_bias n`,
  llamacpp: openAiOnly,
  tei: openAiOnly,
  compatible: openAiOnly,
};

/** Returns the optional fields that are not sent to a server with this profile. A price depends on the service tier. */
export const listUnsupportedFields = (profile: OpenAiProfile): readonly string[] => [
  'service_tier',
  ...unsupported[profile].split(/\s+/),
];

export interface VendorBatchLimits {
  readonly maxBatchInputs?: number;
  readonly maxBatchTokens?: number;
}

/** Limits of one embedding call, for servers that allow less than OpenAI. */
const batchLimits: Partial<Record<OpenAiProfile, VendorBatchLimits>> = {
  // Its limit is 16 384 tokens by its own count, which can be 1.6 times ours.
  mistral: { maxBatchInputs: 512, maxBatchTokens: 10_000 },
  // `--max-client-batch-size`, unless it was started with another.
  tei: { maxBatchInputs: 32 },
};

/** Returns the limits of an upstream's embedding calls that its profile sets. */
export const findBatchLimits = (profile: OpenAiProfile): VendorBatchLimits => batchLimits[profile] ?? {};
