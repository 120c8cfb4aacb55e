import { readImageUrl } from '../collect-media.ts';
import type { ChatBody, ChatMessage, EmbeddingCall, LoadedMedia, UpstreamTarget } from '../upstream.ts';
import { isRecord } from '../json-value.ts';
import { readPictureShape } from '../picture-shape.ts';

/** Requests of ours as OpenAI's API wants them (OpenAI API reference: chat, embeddings, images). Pure. */

/**
 * The chat fields that OpenAI-compatible servers know, copied where the caller set them. Left out on purpose:
 * `stream`, `stream_options` and the two token bounds, made below, and `web_search`, which is the gateway's own name.
 * The four sampling fields in the last line are not OpenAI's, but vLLM's and OpenRouter's; a route to a server that
 * refuses them `drops` them.
 */
const CHAT_FIELDS = `
  audio frequency_penalty function_call functions logit_bias logprobs metadata modalities n
  parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention
  reasoning_effort response_format safety_identifier seed service_tier stop store temperature tool_choice tools
  top_logprobs top_p user verbosity web_search_options
  top_k min_p top_a repetition_penalty`
  .trim()
  .split(/\s+/);

type JsonBody = Record<string, unknown>;

/** @param images by their URLs, those that are sent as bytes */
export function toChatRequest(
  target: UpstreamTarget,
  body: ChatBody,
  stream: boolean,
  images: ReadonlyMap<string, LoadedMedia> = new Map(),
): JsonBody {
  const messages = body.messages.map((message) => toMessage(message, images));
  const request: JsonBody = { model: target.model, messages };
  for (const field of CHAT_FIELDS) {
    const value = body[field];
    // Null means "not given" to our callers; strict servers take it for a wrong type.
    if (value !== undefined && value !== null) {
      request[field] = value;
    }
  }
  if (isWebSearchOn(body['web_search'])) {
    request['web_search_options'] ??= {};
  } else if (body['web_search'] === false) {
    delete request['web_search_options'];
  }
  Object.assign(request, boundTokens(body, target.drops), toImageConfig(body));
  if (stream) {
    request['stream'] = true;
    // Without it OpenAI tells no usage at all in a stream.
    request['stream_options'] = { ...toRecord(body['stream_options']), include_usage: true };
  }
  return leaveOut(request, target.drops);
}

/** The picture that is wanted, as OpenRouter takes it for models that draw; no other server of this form draws in a chat. */
function toImageConfig(body: ChatBody): JsonBody {
  const modalities = body['modalities'];
  if (!Array.isArray(modalities) || !modalities.includes('image')) {
    return {};
  }
  const { aspectRatio, sizeClass } = readPictureShape(body['size'], body['image_quality'] ?? body['quality']);
  const config = {
    ...(aspectRatio === null ? {} : { aspect_ratio: aspectRatio }),
    ...(sizeClass === null ? {} : { image_size: sizeClass }),
  };
  return Object.keys(config).length === 0 ? {} : { image_config: config };
}

/**
 * OpenAI refuses both names at once, and its reasoning models know the newer only: so one of them goes out, with the
 * smaller value, under the older name unless the route drops that or the caller used the newer alone.
 */
function boundTokens(body: ChatBody, drops: ReadonlySet<string>): JsonBody {
  const older = readBound(body['max_tokens']);
  const newer = readBound(body['max_completion_tokens']);
  if (older === null && newer === null) {
    return {};
  }
  const bound = Math.min(older ?? Infinity, newer ?? Infinity);
  const prefersNewer = older === null || drops.has('max_tokens');
  return prefersNewer && !drops.has('max_completion_tokens')
    ? { max_completion_tokens: bound }
    : { max_tokens: bound };
}

/** Zero is our callers' word for "no bound". */
function readBound(value: unknown): number | null {
  return typeof value === 'number' && value > 0 ? value : null;
}

function isWebSearchOn(value: unknown): boolean {
  return value === true || value === 'links' || value === 'no-links';
}

/** Messages travel as they came, but for the nulls that our contract allows and vendors do not. */
function toMessage(message: ChatMessage, images: ReadonlyMap<string, LoadedMedia>): JsonBody {
  const clean = withoutNulls(message);
  if (message.content === null) {
    clean['content'] = null;
  }
  if (Array.isArray(message.tool_calls)) {
    // What Gemini's own dialect adds to calls is for Gemini.
    clean['tool_calls'] = message.tool_calls.map(({ extra_content: _extra, ...call }) => call);
  }
  if (Array.isArray(message.content)) {
    clean['content'] = message.content.map((part: unknown) => toContentPart(part, images));
  }
  return clean;
}

function toContentPart(part: unknown, images: ReadonlyMap<string, LoadedMedia>): unknown {
  if (!isRecord(part)) {
    return part;
  }
  const clean = withoutNulls(part);
  // The contract allows a part without its type where the field that is there tells it.
  clean['type'] ??= clean['image_url'] === undefined ? 'text' : 'image_url';
  const image = images.get(readImageUrl(part) ?? '');
  if (image !== undefined) {
    const url = `data:${image.mediaType};base64,${image.base64}`;
    clean['image_url'] = { ...toRecord(part['image_url']), url };
  }
  return clean;
}

function withoutNulls(value: object): JsonBody {
  return Object.fromEntries(
    Object.entries(value).filter(([, field]) => field !== null && field !== undefined),
  );
}

export function toEmbeddingRequest(target: UpstreamTarget, call: EmbeddingCall): JsonBody {
  const request: JsonBody = { model: target.model, input: call.inputs, encoding_format: 'base64' };
  if (call.dimensions !== null) {
    request['dimensions'] = call.dimensions;
  }
  if (call.user !== null) {
    request['user'] = call.user;
  }
  return leaveOut(request, target.drops);
}

function toRecord(value: unknown): JsonBody {
  return isRecord(value) ? { ...value } : {};
}

/** @param drops fields that the route's server does not take */
export function leaveOut(request: JsonBody, drops: ReadonlySet<string>): JsonBody {
  for (const field of drops) {
    // Without these two there is no request left.
    if (field !== 'model' && field !== 'messages') {
      delete request[field];
    }
  }
  return request;
}
