import { api, call } from '../../lib/api.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Model } from '../../lib/models.ts';
import { sendOnce } from '../../lib/send-once.ts';

/** The longest response: enough to see how the model writes. Reasoning counts, too. */
const maxTokens = 400;
const maxReasoningTokens = 2_000;
/** Levels of reasoning that take few tokens, the least first. */
const lowEfforts = ['none', 'minimal', 'low'];

export const maxPromptChars = 2_000;

export interface ShortResponse {
  /** What a chat model wrote. */
  readonly text: string | null;
  /** The address of the image that was generated. */
  readonly imageUrl: string | null;
  /** The vector of an embedding model. */
  readonly vector: readonly number[] | null;
  /** Null for images. */
  readonly tokens: { readonly input: number; readonly output: number } | null;
  readonly seconds: number | null;
  readonly cost: number | null;
  readonly isFree: boolean;
}

interface Usage {
  readonly total_time?: number | null;
  readonly cost_request?: number | null;
  readonly free_request?: boolean | null;
}

const readUsage = (usage: Usage): Pick<ShortResponse, 'seconds' | 'cost' | 'isFree'> => ({
  seconds: usage.total_time ?? null,
  cost: usage.cost_request ?? null,
  isFree: usage.free_request === true,
});

const kind = 'model';

const nothing = { text: null, imageUrl: null, vector: null, tokens: null };

/** Sends one request to a model of any type. @throws ApiError */
export async function sendShortRequest(
  model: Model,
  prompt: string,
  signal: AbortSignal,
): Promise<ShortResponse> {
  if (model.type === 'image') return await generateImage(model, prompt, signal);
  if (model.type === 'embedding') return await embed(model, prompt, signal);
  return await chat(model, prompt, signal);
}

async function chat(model: Model, prompt: string, signal: AbortSignal): Promise<ShortResponse> {
  const effort = lowEfforts.find((level) => model.reasoning_effort?.choices?.includes(level));
  const body = {
    model: model.id,
    messages: [{ role: 'user' as const, content: prompt }],
    max_tokens: model.reasoning === true ? maxReasoningTokens : maxTokens,
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
  };
  const response = await sendOnce(kind, body, (header) =>
    call(api.POST('/v1/chat/completions', { params: { header }, body, signal })),
  );
  if (typeof response === 'string' || !('choices' in response)) throw ApiError.ofNetwork();
  const { choices, usage } = response;
  const { content } = choices[0]!.message;
  return {
    ...nothing,
    text: typeof content === 'string' ? content : '',
    tokens: { input: usage.prompt_tokens, output: usage.completion_tokens },
    ...readUsage(usage),
  };
}

async function generateImage(model: Model, prompt: string, signal: AbortSignal): Promise<ShortResponse> {
  const size = model.size?.[0];
  const body = {
    model: model.id,
    prompt,
    response_format: 'url' as const,
    ...(size === undefined ? {} : { size }),
  };
  const response = await sendOnce(kind, body, (header) =>
    call(api.POST('/v1/images/generations', { params: { header }, body, signal })),
  );
  if (typeof response === 'string' || !('data' in response)) throw ApiError.ofNetwork();
  return { ...nothing, imageUrl: response.data[0]?.url ?? null, ...readUsage(response.usage) };
}

async function embed(model: Model, input: string, signal: AbortSignal): Promise<ShortResponse> {
  const body = { model: model.id, input, encoding_format: 'float' as const };
  const response = await sendOnce(kind, body, (header) =>
    call(api.POST('/v1/embeddings', { params: { header }, body, signal })),
  );
  if (!('data' in response)) throw ApiError.ofNetwork();
  const vector = response.data[0]?.embedding;
  return {
    ...nothing,
    vector: Array.isArray(vector) ? vector : null,
    tokens: { input: response.usage.prompt_tokens, output: 0 },
    ...readUsage(response.usage),
  };
}
