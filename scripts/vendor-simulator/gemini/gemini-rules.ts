import { type GeminiContent, readContents } from './gemini-contents.ts';
import { checkSignatures, checkToolTurns } from './gemini-tool-turns.ts';
import { sniffImageType } from '../../../shared/contract/image-type.ts';
import { readBase64 } from '../read-base64.ts';
import { type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';

/** Limit for inline data in a request. */
const MAX_REQUEST_BYTES = 20 * 1024 * 1024;
const MAX_STOPS = 5;
const MAX_CANDIDATES = 8;
const LEVELS = ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'];
const MODES = ['AUTO', 'ANY', 'NONE', 'VALIDATED'];
const NAME_PATTERN = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/;
/** A part must have exactly one of these fields. */
const DATA =
  `codeExecutionResult executableCode fileData functionCall functionResponse inlineData text toolCall
  toolResponse`.split(/\s+/);

/** Returns the reason why the vendor rejects a message whose fields are valid. Null if it does not. */
export function checkGenerateRequest(model: string, message: JsonRecord): string | null {
  const config = readRecord(message['generationConfig']);
  return (
    checkContents(model, message) ??
    checkConfig(config) ??
    checkThinking(model, readRecord(config['thinkingConfig'])) ??
    checkTools(message)
  );
}

function checkContents(model: string, message: JsonRecord): string | null {
  const raw = readRecords(message['contents']);
  if (raw.length === 0) {
    return '* GenerateContentRequest.contents: contents is not specified';
  }
  if (raw.some(({ role }) => role !== undefined && role !== 'user' && role !== 'model')) {
    return 'Please use a valid role: user, model.';
  }
  const contents = readContents(message);
  for (const [index, content] of contents.entries()) {
    const problem = checkParts(content, `GenerateContentRequest.contents[${index}]`);
    if (problem !== null) {
      return problem;
    }
  }
  const inlineChars = contents
    .flatMap(({ parts }) => parts)
    .reduce((sum, part) => sum + readText(readRecord(part['inlineData'])['data']).length, 0);
  if (inlineChars > MAX_REQUEST_BYTES) {
    return `Request payload size exceeds the limit: ${MAX_REQUEST_BYTES} bytes.`;
  }
  return checkToolTurns(contents) ?? (model.includes('gemini-3') ? checkSignatures(contents) : null);
}

function checkParts({ parts, calls, responses }: GeminiContent, path: string): string | null {
  if (parts.length === 0) {
    return `* ${path}.parts: contents.parts must not be empty.`;
  }
  for (const [index, part] of parts.entries()) {
    const kinds = DATA.filter((name) => part[name] !== undefined);
    if (kinds.length !== 1) {
      return `* ${path}.parts[${index}].data: required oneof field 'data' must have one initialized field`;
    }
    const problem = checkInline(readRecord(part['inlineData']), part['inlineData'] !== undefined);
    if (problem !== null) {
      return problem;
    }
  }
  const unnamed = [...calls, ...responses].find(({ name }) => name === '');
  if (unnamed !== undefined) {
    const field = calls.includes(unnamed) ? 'function_call' : 'function_response';
    return `* ${path}.parts[${unnamed.index}].${field}.name: Name cannot be empty.`;
  }
  const empty = responses.find(({ part }) => readRecord(part['functionResponse'])['response'] === undefined);
  return empty === undefined
    ? null
    : `* ${path}.parts[${empty.index}].function_response.response: required field is not set`;
}

function checkInline({ mimeType, data }: JsonRecord, isPresent: boolean): string | null {
  if (!isPresent) {
    return null;
  }
  if (readText(mimeType) === '') {
    return 'mime_type of inline_data must not be empty.';
  }
  const bytes = readBase64(readText(data)) ?? Buffer.alloc(0);
  return readText(mimeType).startsWith('image/') && sniffImageType(bytes) === null
    ? 'Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting'
    : null;
}

function checkConfig(config: JsonRecord): string | null {
  const path = '* GenerateContentRequest.generation_config';
  const stops = config['stopSequences'];
  if (Array.isArray(stops) && stops.length > MAX_STOPS) {
    return `${path}.stop_sequences: the number of stop sequences must not exceed ${MAX_STOPS}`;
  }
  const count = Number(config['candidateCount'] ?? 1);
  if (!Number.isInteger(count) || count < 1 || count > MAX_CANDIDATES) {
    return `${path}.candidate_count: candidate_count must be in the range [1, ${MAX_CANDIDATES}].`;
  }
  if (Number(config['maxOutputTokens'] ?? 1) < 1) {
    return `${path}.max_output_tokens: max_output_tokens must be positive.`;
  }
  const temperature = Number(config['temperature'] ?? 0);
  if (temperature < 0 || temperature > 2) {
    return `${path}.temperature: temperature must be in the range [0.0, 2.0].`;
  }
  const hasSchema = config['responseSchema'] !== undefined || config['responseJsonSchema'] !== undefined;
  if (config['responseSchema'] !== undefined && config['responseJsonSchema'] !== undefined) {
    return `${path}: response_schema and response_json_schema must not both be set.`;
  }
  return hasSchema && config['responseMimeType'] !== 'application/json'
    ? `${path}.response_schema: only allowed when response_mime_type is application/json.`
    : null;
}

function checkThinking(model: string, { thinkingBudget, thinkingLevel }: JsonRecord): string | null {
  if (thinkingBudget !== undefined && thinkingLevel !== undefined) {
    return 'You can only set only one of thinking budget and thinking level.';
  }
  const takesLevels = model.includes('gemini-3');
  if (thinkingLevel !== undefined && !takesLevels) {
    return 'Thinking level is not supported for this model.';
  }
  if (thinkingBudget !== undefined && takesLevels) {
    return 'Thinking budget is not supported for this model.';
  }
  if (thinkingLevel !== undefined && !LEVELS.includes(readText(thinkingLevel).toUpperCase())) {
    return `Invalid value at 'generation_config.thinking_config.thinking_level', ${JSON.stringify(thinkingLevel)}`;
  }
  return Number(thinkingBudget ?? 0) < -1 ? 'The thinking budget is out of range.' : null;
}

function checkTools(message: JsonRecord): string | null {
  const names: string[] = [];
  for (const [index, tool] of readRecords(message['tools']).entries()) {
    for (const [at, declaration] of readRecords(tool['functionDeclarations']).entries()) {
      const path = `* GenerateContentRequest.tools[${index}].function_declarations[${at}]`;
      const name = readText(declaration['name']);
      if (!NAME_PATTERN.test(name)) {
        return `${path}.name: [FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.`;
      }
      if (names.includes(name)) {
        return `Duplicate function declaration found: ${name}`;
      }
      if (declaration['parameters'] !== undefined && declaration['parametersJsonSchema'] !== undefined) {
        return `${path}: parameters and parameters_json_schema must not both be set.`;
      }
      names.push(name);
    }
  }
  return checkCalling(readRecord(readRecord(message['toolConfig'])['functionCallingConfig']), names);
}

function checkCalling({ mode, allowedFunctionNames }: JsonRecord, names: readonly string[]): string | null {
  if (mode !== undefined && !MODES.includes(readText(mode).toUpperCase())) {
    return `Invalid value at 'tool_config.function_calling_config.mode', ${JSON.stringify(mode)}`;
  }
  const isForced = readText(mode).toUpperCase() === 'ANY';
  if (isForced && names.length === 0) {
    return 'Function calling config is set without function_declarations.';
  }
  const allowed = Array.isArray(allowedFunctionNames) ? allowedFunctionNames.map(readText) : [];
  if (allowed.length > 0 && !isForced && readText(mode).toUpperCase() !== 'VALIDATED') {
    return 'Allowed function names should only be set when function calling mode is ANY.';
  }
  const undeclared = allowed.find((name) => !names.includes(name));
  return undeclared === undefined ? null : `Allowed function name ${undeclared} is not declared.`;
}
