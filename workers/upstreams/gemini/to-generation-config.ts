import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readText } from '../json-value.ts';
import { type ChatBody, UpstreamError, type UpstreamTarget } from '../upstream.ts';
import { readTraits } from './gemini-traits.ts';
import { toImageConfig } from './to-image-config.ts';
import { toThinkingConfig } from './to-thinking.ts';

/** Fields with the same meaning, whose names differ only in case: snake case and camel case. */
const SAME_FIELDS: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'topP',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  seed: 'seed',
};
const MAX_STOPS = 5;

/** Builds `generationConfig`, which contains all parameters for the generation of the response. Pure. */
export function toGenerationConfig(target: UpstreamTarget, body: ChatBody): JsonRecord {
  const config: Record<string, unknown> = {};
  for (const [field, name] of Object.entries(SAME_FIELDS)) {
    if (typeof body[field] === 'number') {
      config[name] = body[field];
    }
  }
  // Zero means "no limit" to OpenAI-compatible servers; Gemini rejects it.
  Object.assign(config, toPositiveField('topK', body['top_k']));
  Object.assign(config, toPositiveField('maxOutputTokens', findTokenLimit(body)));
  if (typeof body['n'] === 'number' && body['n'] > 1) {
    config['candidateCount'] = body['n'];
  }
  const stops = readStops(body['stop']);
  if (stops.length > 0) {
    config['stopSequences'] = stops;
  }
  if (body['logprobs'] === true) {
    config['responseLogprobs'] = true;
    Object.assign(config, toPositiveField('logprobs', body['top_logprobs']));
  }
  Object.assign(config, toResponseFormat(body['response_format']), toImageFormat(target, body));
  const effort = readText(body['reasoning_effort']);
  const thinking = effort === null ? null : toThinkingConfig(target, effort);
  if (thinking !== null) {
    config['thinkingConfig'] = thinking;
  }
  return config;
}

function toPositiveField(name: string, value: unknown): JsonRecord {
  return typeof value === 'number' && value > 0 ? { [name]: value } : {};
}

/** Returns the smaller value of OpenAI's two fields for the token limit. It includes thoughts, as in OpenAI's API. */
function findTokenLimit(body: ChatBody): number {
  const limits = [body['max_tokens'], body['max_completion_tokens']];
  const positiveLimits = limits.filter((bound): bound is number => typeof bound === 'number' && bound > 0);
  return positiveLimits.length === 0 ? 0 : Math.min(...positiveLimits);
}

function readStops(stop: unknown): string[] {
  const texts = typeof stop === 'string' ? [stop] : readArray(stop);
  const stops = texts.filter((text): text is string => typeof text === 'string' && text !== '');
  if (stops.length > MAX_STOPS) {
    throw new UpstreamError('rejected', `This model accepts at most ${MAX_STOPS} strings in \`stop\`.`);
  }
  return stops;
}

function toResponseFormat(format: unknown): JsonRecord {
  if (!isRecord(format) || (format['type'] !== 'json_object' && format['type'] !== 'json_schema')) {
    return {};
  }
  const described = isRecord(format['json_schema']) ? format['json_schema'] : {};
  const schema = format['type'] === 'json_schema' ? described['schema'] : undefined;
  return {
    responseMimeType: 'application/json',
    ...(isRecord(schema) ? { responseJsonSchema: schema } : {}),
  };
}

/** Only for a model that generates images; others reject a size. */
function toImageFormat(target: UpstreamTarget, body: ChatBody): JsonRecord {
  const requestsImages = readArray(body['modalities']).includes('image');
  if (!requestsImages && !readTraits(target.model).generatesImages) {
    return {};
  }
  const imageConfig = toImageConfig(body['size'], body['image_quality'] ?? body['quality']);
  return {
    ...(requestsImages ? { responseModalities: ['TEXT', 'IMAGE'] } : {}),
    ...(imageConfig === null ? {} : { imageConfig }),
  };
}
