import type { ChatBody, EmbeddingCall, LoadedMedia, UpstreamTarget } from '../upstream.ts';
import { isRecord } from '../../../shared/encoding/json-record.ts';
import { readImageShape } from '../image-shape.ts';
import { profiles, type Profile } from './profiles.ts';
import { toMessages } from './to-messages.ts';

/** Converts requests to OpenAI's format (OpenAI API reference: chat, embeddings, images). Pure. */

/**
 * The optional chat fields, copied if the caller set them and the route does not drop them. Deliberately omitted:
 * `stream`, `stream_options` and the two token limits, which are set below, and `web_search`, which is the gateway's
 * own field.
 */
const CHAT_FIELDS = `
  audio frequency_penalty logit_bias logprobs metadata modalities n parallel_tool_calls prediction presence_penalty
  prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed
  stop store temperature tool_choice tools top_logprobs top_p user verbosity web_search_options
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
  const profile = profiles[target.profile];
  const request: JsonBody = { model: target.model, messages: toMessages(body.messages, profile, images) };
  for (const field of CHAT_FIELDS) {
    const value = toValue(body[field]);
    if (value !== undefined) {
      request[field] = value;
    }
  }
  for (const field of target.accepts) {
    request[field] ??= body[field] ?? undefined;
  }
  omitEmpty(request);
  if (isWebSearchOn(body['web_search'])) {
    request['web_search_options'] ??= {};
  } else if (body['web_search'] === false) {
    delete request['web_search_options'];
  }
  Object.assign(request, toTokenLimit(body, target.drops, profile.limit), toImageConfig(body));
  if (stream) {
    request['stream'] = true;
    // Without this, OpenAI does not report usage in a stream.
    if (profile.hasStreamOptions)
      request['stream_options'] = { ...toRecord(body['stream_options']), include_usage: true };
  }
  return rename(omitFields(request, target.drops), profile.names);
}

/** For our callers, null means "not set"; strict servers reject it as a wrong type. */
const toValue = (value: unknown): unknown => (value === null ? undefined : withoutInnerNulls(value));

/** Values that a JSON schema may contain, where null is a value like any other. */
const schemaValues = new Set(['const', 'default', 'enum', 'example', 'examples']);

function withoutInnerNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutInnerNulls);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      if (schemaValues.has(name)) return [[name, inner] as const];
      return inner === null || inner === undefined ? [] : [[name, withoutInnerNulls(inner)] as const];
    }),
  );
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/** Strict servers reject empty lists, and settings for tools without tools. */
function omitEmpty(request: JsonBody): void {
  for (const field of ['tools', 'stop', 'modalities']) if (isEmptyList(request[field])) delete request[field];
  if (request['tools'] !== undefined) return;
  delete request['tool_choice'];
  delete request['parallel_tool_calls'];
}

function rename(request: JsonBody, names: Readonly<Record<string, string>>): JsonBody {
  for (const [name, other] of Object.entries(names)) {
    if (request[name] === undefined) continue;
    request[other] ??= request[name];
    delete request[name];
  }
  return request;
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
 * Only one of the two limits is sent, with the smaller value: OpenAI rejects a request with both, and most other servers
 * know `max_tokens` alone and would ignore the other. If the route drops the name that its server should know, the other
 * one is sent.
 */
function toTokenLimit(body: ChatBody, drops: ReadonlySet<string>, name: Profile['limit']): JsonBody {
  const limits = [readLimit(body['max_tokens']), readLimit(body['max_completion_tokens'])];
  const limit = Math.min(...limits.map((value) => value ?? Infinity));
  if (limit === Infinity) {
    return {};
  }
  const other = name === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  return { [drops.has(name) && !drops.has(other) ? other : name]: limit };
}

/** For our callers, zero means "no limit". */
function readLimit(value: unknown): number | null {
  return typeof value === 'number' && value > 0 ? value : null;
}

function isWebSearchOn(value: unknown): boolean {
  return value === true || value === 'links' || value === 'no-links';
}

export function toEmbeddingRequest(target: UpstreamTarget, call: EmbeddingCall): JsonBody {
  const request: JsonBody = { model: target.model, input: call.inputs, encoding_format: 'base64' };
  if (call.dimensions !== null) {
    request['dimensions'] = call.dimensions;
  }
  if (call.user !== null) {
    request['user'] = call.user;
  }
  return rename(omitFields(request, target.drops), profiles[target.profile].names);
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
