import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';

const FIELDS = new Set(
  `cache_control container inference_geo max_tokens messages metadata model output_config service_tier speed
  stop_sequences stream system temperature thinking tool_choice tools top_k top_p`.split(/\s+/),
);
const THINKING_FIELDS: Readonly<Record<string, readonly string[]>> = {
  enabled: ['type', 'budget_tokens', 'display'],
  adaptive: ['type', 'display'],
  disabled: ['type'],
};
const MIN_BUDGET = 1024;
const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'];

export function isThinkingOn(body: JsonRecord): boolean {
  const { type } = readRecord(body['thinking']);
  return type === 'enabled' || type === 'adaptive';
}

/** Returns why the vendor rejects a request, regardless of its messages. Null if it does not. */
export function checkRequest(model: string, body: JsonRecord): string | null {
  const unknown = Object.keys(body).find((name) => !FIELDS.has(name));
  if (unknown !== undefined) {
    return `${unknown}: Extra inputs are not permitted`;
  }
  if (model === '') {
    return 'model: Field required';
  }
  const maxTokens = body['max_tokens'];
  if (maxTokens === undefined) {
    return 'max_tokens: Field required';
  }
  if (!Number.isInteger(maxTokens)) {
    return 'max_tokens: Input should be a valid integer';
  }
  if (Number(maxTokens) < 1) {
    return 'max_tokens: Input should be greater than or equal to 1';
  }
  return (
    checkSampling(model, body) ??
    checkThinking(model, body, Number(maxTokens)) ??
    checkOutput(body['output_config']) ??
    checkStops(body['stop_sequences']) ??
    checkTools(body)
  );
}

function checkSampling(model: string, body: JsonRecord): string | null {
  for (const name of ['temperature', 'top_p', 'top_k']) {
    const value = body[name];
    if (value === undefined) {
      continue;
    }
    if (model.includes('claude-new')) {
      return `\`${name}\` is deprecated for this model.`;
    }
    if (typeof value !== 'number') {
      return `${name}: Input should be a valid number`;
    }
    if (value < 0) {
      return `${name}: Input should be greater than or equal to 0`;
    }
    if (name !== 'top_k' && value > 1) {
      return `${name}: Input should be less than or equal to 1`;
    }
  }
  return null;
}

function checkThinking(model: string, body: JsonRecord, maxTokens: number): string | null {
  if (body['thinking'] === undefined) {
    return null;
  }
  const thinking = readRecord(body['thinking']);
  const type = readText(thinking['type']);
  const fields = Object.hasOwn(THINKING_FIELDS, type) ? THINKING_FIELDS[type] : undefined;
  if (fields === undefined) {
    return `thinking: Input tag '${type}' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'`;
  }
  const unknown = Object.keys(thinking).find((name) => !fields.includes(name));
  if (unknown !== undefined) {
    return `thinking.${type}.${unknown}: Extra inputs are not permitted`;
  }
  if (type === 'enabled' && model.includes('claude-new')) {
    return '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.';
  }
  if (type === 'enabled') {
    const budget = thinking['budget_tokens'];
    if (budget === undefined) {
      return 'thinking.enabled.budget_tokens: Field required';
    }
    if (!Number.isInteger(budget) || Number(budget) < MIN_BUDGET) {
      return `thinking.enabled.budget_tokens: Input should be greater than or equal to ${MIN_BUDGET}`;
    }
    if (Number(budget) >= maxTokens) {
      return '`max_tokens` must be greater than `thinking.budget_tokens`.';
    }
  }
  return isThinkingOn(body) ? checkOptionsWithThinking(body) : null;
}

function checkOptionsWithThinking(body: JsonRecord): string | null {
  if (body['temperature'] !== undefined && body['temperature'] !== 1) {
    return '`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.';
  }
  if (body['top_k'] !== undefined) {
    return '`top_k` must be unset when thinking is enabled or in adaptive mode.';
  }
  if (typeof body['top_p'] === 'number' && body['top_p'] < 0.95) {
    return '`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.';
  }
  const choice = readRecord(body['tool_choice'])['type'];
  return choice === 'any' || choice === 'tool'
    ? 'Thinking may not be enabled when tool_choice forces tool use.'
    : null;
}

function checkOutput(config: unknown): string | null {
  const { effort, format, ...otherFields } = readRecord(config);
  const [unknown] = Object.keys(otherFields);
  if (unknown !== undefined) {
    return `output_config.${unknown}: Extra inputs are not permitted`;
  }
  if (effort !== undefined && effort !== null && !EFFORTS.includes(readText(effort))) {
    return `output_config.effort: Input should be ${EFFORTS.map((name) => `'${name}'`).join(', ')}`;
  }
  if (format === undefined || format === null) {
    return null;
  }
  const { type, schema, ...extra } = readRecord(format);
  const [unknownOfFormat] = Object.keys(extra);
  if (type !== 'json_schema') {
    return "output_config.format.type: Input should be 'json_schema'";
  }
  if (unknownOfFormat !== undefined) {
    return `output_config.format.${unknownOfFormat}: Extra inputs are not permitted`;
  }
  return isRecord(schema) ? null : 'output_config.format.schema: Field required';
}

function checkStops(stops: unknown): string | null {
  if (stops === undefined) {
    return null;
  }
  if (!Array.isArray(stops) || !stops.every((stop) => typeof stop === 'string')) {
    return 'stop_sequences: Input should be a valid list';
  }
  return stops.every((stop) => stop.trim() !== '')
    ? null
    : 'stop_sequences: each stop sequence must contain non-whitespace';
}

const TOOL_FIELDS = new Set(
  'allowed_callers cache_control defer_loading description eager_input_streaming input_examples input_schema name strict type'.split(
    ' ',
  ),
);

export function isServerSearch(tool: JsonRecord): boolean {
  return readText(tool['type']).startsWith('web_search_');
}

export function isCustomTool(tool: JsonRecord): boolean {
  return (tool['type'] ?? 'custom') === 'custom';
}

function checkTools(body: JsonRecord): string | null {
  const tools = readRecords(body['tools']);
  for (const [index, tool] of tools.entries()) {
    const problem = isCustomTool(tool)
      ? checkCustomTool(tool, `tools.${index}.custom`)
      : checkServerTool(tool, `tools.${index}`);
    if (problem !== null) {
      return problem;
    }
  }
  const names = tools.map((tool) => tool['name']);
  if (new Set(names).size < names.length) {
    return 'tools: Tool names must be unique.';
  }
  if (body['tool_choice'] === undefined) {
    return null;
  }
  if (tools.length === 0) {
    return 'tool_choice may only be specified while providing tools';
  }
  const { type, name } = readRecord(body['tool_choice']);
  if (!['auto', 'any', 'tool', 'none'].includes(readText(type))) {
    return `tool_choice: Input tag '${readText(type)}' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'`;
  }
  return type === 'tool' && !names.includes(name)
    ? `Tool '${readText(name)}' not found in provided tools`
    : null;
}

function checkCustomTool(tool: JsonRecord, path: string): string | null {
  const unknown = Object.keys(tool).find((name) => !TOOL_FIELDS.has(name));
  if (unknown !== undefined) {
    return `${path}.${unknown}: Extra inputs are not permitted`;
  }
  if (!/^[a-zA-Z0-9_-]{1,128}$/.test(readText(tool['name']))) {
    return `${path}.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`;
  }
  if (tool['description'] !== undefined && typeof tool['description'] !== 'string') {
    return `${path}.description: Input should be a valid string`;
  }
  const schema = tool['input_schema'];
  if (!isRecord(schema)) {
    return `${path}.input_schema: Field required`;
  }
  if (schema['type'] !== 'object') {
    return schema['type'] === undefined
      ? `${path}.input_schema.type: Field required`
      : `${path}.input_schema.type: Input should be 'object'`;
  }
  return null;
}

function checkServerTool(tool: JsonRecord, path: string): string | null {
  if (!isServerSearch(tool)) {
    return `${path}: Input tag '${readText(tool['type'])}' found using 'type' does not match any of the expected tags: 'custom', 'web_search_20250305'`;
  }
  return tool['name'] === 'web_search'
    ? null
    : `${path}.web_search_20250305.name: Input should be 'web_search'`;
}
