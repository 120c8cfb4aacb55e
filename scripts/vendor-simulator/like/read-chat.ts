import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { countTokens } from '../../../shared/catalog/count-tokens.ts';
import { joinTexts } from '../conversation.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';

/** What the personalities read in a chat. */

/** How many times as many tokens as in OpenAI's vocabulary a Russian text has in Qwen's, Mistral's or Llama's. */
const cyrillicRatio = 1.6;
/** What a chat template adds. */
const templateTokens = 11;

/** Counts a text by a vocabulary that knows Cyrillic less well than OpenAI's. */
export function countOwnTokens(text: string): number {
  return Math.ceil(countTokens(text) * (/\p{Script=Cyrillic}/u.test(text) ? cyrillicRatio : 1));
}

/** Counts the texts of a chat's messages, with the server's own vocabulary. */
export function countPrompt(body: JsonRecord): number {
  const texts = readRecords(body['messages']).map((message) => readContent(message));
  return texts.reduce((sum, text) => sum + countOwnTokens(text), templateTokens);
}

function readContent({ content }: JsonRecord): string {
  return typeof content === 'string'
    ? content
    : joinTexts(readRecords(content).map((part) => readText(part['text'])));
}

export function readLimit(body: JsonRecord): number | null {
  const limit = body['max_completion_tokens'] ?? body['max_tokens'];
  return typeof limit === 'number' ? limit : null;
}

export function hasImage(body: JsonRecord): boolean {
  return readRecords(body['messages']).some(({ content }) =>
    readRecords(content).some((part) => part['type'] === 'image_url'),
  );
}

/** Returns the arguments of all calls in the conversation, as they were sent. */
export function listArguments(body: JsonRecord): readonly unknown[] {
  return readRecords(body['messages'])
    .flatMap((message) => readRecords(message['tool_calls']))
    .map((call) => readRecord(call['function'])['arguments']);
}

export function isJson(text: unknown): boolean {
  if (typeof text !== 'string') return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns the inputs of an embedding call. */
export function listInputs({ input }: JsonRecord): readonly string[] {
  const inputs: unknown[] = Array.isArray(input) ? input : [input];
  return inputs.filter((text) => typeof text === 'string');
}

/** Returns only the fields of these names. */
export function keepFields(body: JsonRecord, names: ReadonlySet<string>): JsonRecord {
  return Object.fromEntries(Object.entries(body).filter(([name]) => names.has(name)));
}

/** Changes each choice of a response or chunk. */
export function mapChoices(response: JsonRecord, change: (choice: JsonRecord) => JsonRecord): JsonRecord {
  return { ...response, choices: readRecords(response['choices']).map(change) };
}

/** Changes the message or the delta of each choice. */
export function mapMessages(response: JsonRecord, change: (message: JsonRecord) => JsonRecord): JsonRecord {
  return mapChoices(response, (choice) => {
    const name = isRecord(choice['message']) ? 'message' : 'delta';
    return { ...choice, [name]: change(readRecord(choice[name])) };
  });
}

/** Changes the usage of a response or chunk, if it has any. */
export function mapUsage(response: JsonRecord, change: (usage: JsonRecord) => JsonRecord): JsonRecord {
  return isRecord(response['usage']) ? { ...response, usage: change(response['usage']) } : response;
}

/** Replaces the prompt's tokens by the server's own count. */
export function withOwnPrompt(usage: JsonRecord, prompt: number): JsonRecord {
  const completion = Number(usage['completion_tokens'] ?? 0);
  return { ...usage, prompt_tokens: prompt, total_tokens: prompt + completion };
}
