import { joinTexts } from '../conversation.ts';
import { countWords } from '../count-words.ts';
import type { SimulatedResponse, SimulatedCall } from '../dialect.ts';
import { type GeminiRequestError, createFieldError } from './gemini-error.ts';
import { parseGeminiMessage } from './gemini-parse.ts';
import { BATCH_EMBED_REQUEST } from './gemini-shapes.ts';
import { type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';
import { DEFAULT_DIMENSIONS } from '../vectors.ts';

const MAX_REQUESTS = 100;

export function handleGeminiEmbeddings(call: SimulatedCall): SimulatedResponse | GeminiRequestError {
  const { faults, settings, model } = call;
  const { message, violations } = parseGeminiMessage(call.body, BATCH_EMBED_REQUEST);
  if (violations.length > 0) {
    return createFieldError(violations);
  }
  const requests = readRecords(message['requests']);
  const texts = requests.map(readRequestText);
  const problem = checkRequests(requests, texts, model) ?? checkPoison(texts, faults.poison);
  if (problem !== null) {
    return { errorMessage: problem };
  }
  const embeddings = requests.map((request, index) => {
    const dimensions = Number(request['outputDimensionality'] ?? DEFAULT_DIMENSIONS);
    return { values: [...settings.vectors.toFloats(texts[index] ?? '', dimensions)] };
  });
  const promptTokenCount = texts.reduce((total, text) => total + countWords(text), 0);
  const usage =
    faults.usage === 'missing'
      ? {}
      : { usageMetadata: { promptTokenCount, totalTokenCount: promptTokenCount } };
  return { kind: 'whole', parts: [JSON.stringify({ embeddings, ...usage })] };
}

function readRequestText(request: JsonRecord): string {
  const parts = readRecords(readRecord(request['content'])['parts']);
  return joinTexts(parts.map((part) => readText(part['text'])));
}

function checkRequests(
  requests: readonly JsonRecord[],
  texts: readonly string[],
  model: string,
): string | null {
  if (requests.length === 0) {
    return '* BatchEmbedContentsRequest.requests: contents is not specified';
  }
  if (requests.length > MAX_REQUESTS) {
    return `* BatchEmbedContentsRequest.requests: at most ${MAX_REQUESTS} requests can be in one batch`;
  }
  const mismatched = requests.findIndex((request) => request['model'] !== `models/${model}`);
  if (mismatched !== -1) {
    return `* BatchEmbedContentsRequest.requests[${mismatched}].model: must be the model of the batch, models/${model}`;
  }
  const empty = texts.indexOf('');
  if (empty !== -1) {
    return `* BatchEmbedContentsRequest.requests[${empty}].content: contains an empty Part.`;
  }
  const short = requests.findIndex((request) => Number(request['outputDimensionality'] ?? 1) < 1);
  return short === -1
    ? null
    : `* BatchEmbedContentsRequest.requests[${short}].output_dimensionality: must be positive`;
}

function checkPoison(texts: readonly string[], poison: string | undefined): string | null {
  return poison !== undefined && texts.some((text) => text.includes(poison))
    ? 'The request contains a text that this model refuses.'
    : null;
}
