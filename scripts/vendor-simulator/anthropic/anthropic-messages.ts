import { checkToolPairs, checkToolLoop } from './anthropic-tool-loop.ts';
import { type AnthropicTurn, mergeTurns, type PlacedBlock, placeBlocks } from './anthropic-turns.ts';
import { sniffImageType } from '../../../shared/contract/image-type.ts';
import { readBase64 } from '../read-base64.ts';
import { isSignatureOf } from '../signatures.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readRecord, readText } from '../json-record.ts';
import { SEARCH_RESULTS } from '../web-search.ts';

interface BlockRules {
  readonly fields: readonly string[];
  readonly role: 'user' | 'assistant' | null;
}

const BLOCKS: Readonly<Record<string, BlockRules>> = {
  text: { fields: ['text', 'citations'], role: null },
  image: { fields: ['source'], role: 'user' },
  document: { fields: ['source', 'citations', 'context', 'title'], role: 'user' },
  tool_result: { fields: ['tool_use_id', 'content', 'is_error'], role: 'user' },
  tool_use: { fields: ['id', 'name', 'input', 'caller'], role: 'assistant' },
  thinking: { fields: ['thinking', 'signature'], role: 'assistant' },
  redacted_thinking: { fields: ['data'], role: 'assistant' },
  server_tool_use: { fields: ['id', 'name', 'input', 'caller'], role: 'assistant' },
  web_search_tool_result: { fields: ['tool_use_id', 'content', 'caller'], role: 'assistant' },
};
const ID_PATTERN = /^[a-zA-Z0-9_-]+$/;
const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

/** Returns the turns of a conversation, or the reason why the vendor rejects them. */
export function readMessages(body: JsonRecord, enforcesThinking: boolean): readonly AnthropicTurn[] | string {
  const messages = body['messages'];
  if (messages === undefined) {
    return 'messages: Field required';
  }
  if (!Array.isArray(messages) || !messages.every(isRecord)) {
    return 'messages: Input should be a valid list';
  }
  if (messages.length === 0) {
    return 'messages: at least one message is required';
  }
  for (const [index, message] of messages.entries()) {
    const problem = checkMessage(message, `messages.${index}`);
    if (problem !== null) {
      return problem;
    }
  }
  const turns = mergeTurns(messages);
  return (
    checkOrder(turns) ??
    checkSystem(body['system']) ??
    findFirst(turns.flatMap(({ role, blocks }) => blocks.map((block) => checkBlock(block, role)))) ??
    checkToolPairs(turns) ??
    (enforcesThinking ? checkToolLoop(turns) : null) ??
    turns
  );
}

function checkMessage(message: JsonRecord, path: string): string | null {
  const { role, content, ...otherFields } = message;
  const [unknown] = Object.keys(otherFields);
  if (unknown !== undefined) {
    return `${path}.${unknown}: Extra inputs are not permitted`;
  }
  if (role === 'system') {
    return 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.';
  }
  if (role !== 'user' && role !== 'assistant') {
    return `${path}.role: Input should be 'user' or 'assistant'`;
  }
  if (typeof content !== 'string' && !(Array.isArray(content) && content.every(isRecord))) {
    return content === undefined
      ? `${path}.content: Field required`
      : `${path}.content: Input should be a valid list`;
  }
  return content.length === 0
    ? `${path}: all messages must have non-empty content except for the optional final assistant message`
    : null;
}

function checkOrder(turns: readonly AnthropicTurn[]): string | null {
  if (turns[0]?.role !== 'user') {
    return 'messages: first message must use the "user" role';
  }
  const last = turns.at(-1);
  const text = readText(last?.blocks.at(-1)?.block['text']);
  return last?.role === 'assistant' && text !== text.trimEnd()
    ? 'messages: final assistant content cannot end with trailing whitespace'
    : null;
}

function checkSystem(system: unknown): string | null {
  if (system === undefined || typeof system === 'string') {
    return null;
  }
  if (!Array.isArray(system)) {
    return 'system: Input should be a valid list';
  }
  return placeBlocks(system, 'system').some(({ type, block }) => type !== 'text' || block['text'] === '')
    ? 'system: text content blocks must be non-empty'
    : null;
}

function checkBlock({ block, type, path }: PlacedBlock, role: string): string | null {
  const rules = Object.hasOwn(BLOCKS, type) ? BLOCKS[type] : undefined;
  if (rules === undefined) {
    const known = Object.keys(BLOCKS).map((name) => `'${name}'`);
    return `${path}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${known.join(', ')}`;
  }
  const unknown = Object.keys(block).find(
    (name) => name !== 'type' && name !== 'cache_control' && !rules.fields.includes(name),
  );
  if (unknown !== undefined) {
    return `${path}.${type}.${unknown}: Extra inputs are not permitted`;
  }
  if (rules.role !== null && rules.role !== role) {
    return `${path}: \`${type}\` blocks can only be in \`${rules.role}\` messages`;
  }
  switch (type) {
    case 'text':
      return checkText(block['text'], path);
    case 'image':
      return checkImage(readRecord(block['source']), path);
    case 'document':
      return isRecord(block['source']) ? null : `${path}.document.source: Field required`;
    case 'tool_result':
      return checkResultContent(block, path);
    case 'tool_use':
    case 'server_tool_use':
      return checkUse(block, `${path}.${type}`);
    case 'thinking':
      return isSignatureOf(readText(block['signature']), readText(block['thinking']))
        ? null
        : `${path}: Invalid \`signature\` in \`thinking\` block`;
    case 'redacted_thinking':
      return `${path}: Invalid \`data\` in \`redacted_thinking\` block`;
    default:
      return checkSearchResults(block, path);
  }
}

function checkText(text: unknown, path: string): string | null {
  if (typeof text !== 'string') {
    return `${path}.text.text: Field required`;
  }
  if (text === '') {
    return 'messages: text content blocks must be non-empty';
  }
  return text.trim() === '' ? 'messages: text content blocks must contain non-whitespace text' : null;
}

function checkImage(source: JsonRecord, path: string): string | null {
  const { type, url, data, media_type: mediaType } = source;
  if (type === 'url') {
    return /^https?:\/\//.test(readText(url))
      ? null
      : `${path}.image.source.url: Only HTTP(S) URLs are supported.`;
  }
  if (type !== 'base64') {
    return `${path}.image.source: Input tag '${readText(type)}' found using 'type' does not match any of the expected tags: 'base64', 'url'`;
  }
  if (!IMAGE_TYPES.includes(readText(mediaType))) {
    return `${path}.image.source.base64.media_type: Input should be ${IMAGE_TYPES.map((name) => `'${name}'`).join(', ')}`;
  }
  const bytes = readBase64(readText(data));
  if (bytes === null) {
    return `${path}.image.source.base64: invalid base64 data`;
  }
  const found = sniffImageType(bytes);
  if (found === null) {
    return 'Could not process image';
  }
  return found === mediaType
    ? null
    : `${path}.image.source.base64.data: The image was specified using the ${readText(mediaType)} media type, but the image appears to be a ${found} image`;
}

const RESULT_BLOCKS = new Set(['text', 'image', 'document']);

function checkResultContent(block: JsonRecord, path: string): string | null {
  if (!ID_PATTERN.test(readText(block['tool_use_id']))) {
    return `${path}.tool_result.tool_use_id: String should match pattern '${ID_PATTERN.source}'`;
  }
  if (!Array.isArray(block['content'])) {
    return null;
  }
  const blocks = placeBlocks(block['content'], `${path}.tool_result.content`);
  const invalid = blocks.find(({ type }) => !RESULT_BLOCKS.has(type));
  return invalid === undefined
    ? findFirst(blocks.map((inner) => checkBlock(inner, 'user')))
    : `${invalid.path}: Input tag '${invalid.type}' found using 'type' does not match any of the expected tags: 'document', 'image', 'text'`;
}

function checkUse(block: JsonRecord, path: string): string | null {
  if (!ID_PATTERN.test(readText(block['id']))) {
    return `${path}.id: String should match pattern '${ID_PATTERN.source}'`;
  }
  if (readText(block['name']) === '') {
    return `${path}.name: Field required`;
  }
  return isRecord(block['input']) ? null : `${path}.input: Input should be a valid dictionary`;
}

/** Search results must be sent back unchanged, because the vendor reads them from the request. */
function checkSearchResults(block: JsonRecord, path: string): string | null {
  const results = Array.isArray(block['content']) ? block['content'].map(readRecord) : [];
  const known = new Set(SEARCH_RESULTS.map(encryptResult));
  return results.every((result) => known.has(readText(result['encrypted_content'])))
    ? null
    : `${path}: Invalid \`encrypted_content\` in \`web_search_tool_result\` block`;
}

/** Opaque to the client, like the vendor's encrypted content. */
export function encryptResult({ text }: { readonly text: string }): string {
  return Buffer.from(text).toString('base64');
}

function findFirst(problems: readonly (string | null)[]): string | null {
  return problems.find((problem) => problem !== null) ?? null;
}
