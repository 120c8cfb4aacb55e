import { readImageUrl } from '../collect-media.ts';
import type { ChatBody, ChatMessage, EmbeddingCall, LoadedMedia, UpstreamTarget } from '../upstream.ts';
import { isRecord } from '../../../shared/encoding/json-record.ts';
import { readImageShape } from '../image-shape.ts';

/** Converts requests to OpenAI's format (OpenAI API reference: chat, embeddings, images). Pure. */

/**
 * The chat fields that OpenAI-compatible servers support, copied if the caller set them. Deliberately omitted:
 * `stream`, `stream_options` and the two token limits, which are set below, and `web_search`, which is the gateway's
 * own field. The four sampling fields in the last line are from vLLM and OpenRouter; if a server rejects them, its
 * route `drops` them.
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

/** @param images the images that are sent as bytes, keyed by URL */
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
    // For our callers, null means "not set"; strict servers reject it as a wrong type.
    if (value !== undefined && value !== null) {
      request[field] = value;
    }
  }
  if (isWebSearchOn(body['web_search'])) {
    request['web_search_options'] ??= {};
  } else if (body['web_search'] === false) {
    delete request['web_search_options'];
  }
  Object.assign(request, toTokenLimit(body, target.drops), toImageConfig(body));
  if (stream) {
    request['stream'] = true;
    // Without this, OpenAI does not report usage in a stream.
    request['stream_options'] = { ...toRecord(body['stream_options']), include_usage: true };
  }
  return omitFields(request, target.drops);
}

/**
 * Returns the requested aspect ratio and size of images, for chat models that generate them, as OpenRouter's
 * `image_config`. No other server with this API generates images in a chat.
 */
function toImageConfig(body: ChatBody): JsonBody {
  const modalities = body['modalities'];
  if (!Array.isArray(modalities) || !modalities.includes('image')) {
    return {};
  }
  const { aspectRatio, sizeClass } = readImageShape(body['size'], body['image_quality'] ?? body['quality']);
  const config = {
    ...(aspectRatio === null ? {} : { aspect_ratio: aspectRatio }),
    ...(sizeClass === null ? {} : { image_size: sizeClass }),
  };
  return Object.keys(config).length === 0 ? {} : { image_config: config };
}

/**
 * OpenAI rejects a request with both `max_tokens` and `max_completion_tokens`, and its reasoning models only accept the
 * latter. So only one field is sent, with the smaller value: `max_tokens`, unless the route drops it or the caller used
 * only `max_completion_tokens`.
 */
function toTokenLimit(body: ChatBody, drops: ReadonlySet<string>): JsonBody {
  const older = readLimit(body['max_tokens']);
  const newer = readLimit(body['max_completion_tokens']);
  if (older === null && newer === null) {
    return {};
  }
  const limit = Math.min(older ?? Infinity, newer ?? Infinity);
  const prefersNewer = older === null || drops.has('max_tokens');
  return prefersNewer && !drops.has('max_completion_tokens')
    ? { max_completion_tokens: limit }
    : { max_tokens: limit };
}

/** For our callers, zero means "no limit". */
function readLimit(value: unknown): number | null {
  return typeof value === 'number' && value > 0 ? value : null;
}

function isWebSearchOn(value: unknown): boolean {
  return value === true || value === 'links' || value === 'no-links';
}

/** Passes messages on unchanged, except for nulls that our contract allows and vendors reject. */
function toMessage(message: ChatMessage, images: ReadonlyMap<string, LoadedMedia>): JsonBody {
  const clean = withoutNulls(message);
  if (message.content === null) {
    clean['content'] = null;
  }
  if (Array.isArray(message.tool_calls)) {
    // Remove extensions of Gemini's dialect, which are only for Gemini.
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
  // The contract allows a part without a type if its fields imply the type.
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
  return omitFields(request, target.drops);
}

function toRecord(value: unknown): JsonBody {
  return isRecord(value) ? { ...value } : {};
}

/** @param drops fields that the route's server does not accept */
export function omitFields(request: JsonBody, drops: ReadonlySet<string>): JsonBody {
  for (const field of drops) {
    // Every request needs these two.
    if (field !== 'model' && field !== 'messages') {
      delete request[field];
    }
  }
  return request;
}
