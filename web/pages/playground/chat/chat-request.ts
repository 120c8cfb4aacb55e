import type { components } from '../../../generated/api.d.ts';
import { takesPictures, type Model } from '../../../lib/models.ts';
import type { Picture } from '../shared/pictures.ts';
import type { ChatOptions, ChatState, Turn } from './chat-state.ts';

type Schemas = components['schemas'];
export type ChatRequest = Schemas['ChatRequest'];

interface AskedTurn extends Pick<Turn, 'text' | 'pictures'> {
  readonly answer: { readonly text: string };
}

/** Returns the body of the request that answers the last of the turns. */
export function createChatRequest(
  model: Model,
  { system, options }: Pick<ChatState, 'system' | 'options'>,
  turns: readonly AskedTurn[],
): ChatRequest {
  const last = turns.at(-1);
  const messages: Schemas['Message'][] = [];
  if (system.trim() !== '') messages.push({ role: 'system', content: system });
  for (const turn of turns) {
    // What got no answer is not part of the conversation.
    if (turn !== last && turn.answer.text === '') continue;
    messages.push({ role: 'user', content: writeContent(turn.text, turn.pictures, model) });
    if (turn !== last) messages.push({ role: 'assistant', content: turn.answer.text });
  }
  return {
    model: model.id,
    messages,
    ...readOptions(model, options),
    stream: true,
    stream_options: { include_usage: true },
  };
}

function writeContent(
  text: string,
  pictures: readonly Picture[],
  model: Model,
): string | Schemas['ContentItem'][] {
  if (pictures.length === 0 || !takesPictures(model)) return text;
  const images = pictures.map(({ url }) => ({ type: 'image_url' as const, image_url: { url } }));
  return text === '' ? images : [...images, { type: 'text', text }];
}

const numberOptions = [
  'temperature',
  'top_p',
  'max_tokens',
  'frequency_penalty',
  'presence_penalty',
] as const satisfies readonly (keyof ChatOptions)[];

/** Only what was set, and what the model has: another model may have been chosen since. */
function readOptions(model: Model, options: ChatOptions): Partial<ChatRequest> {
  const fields: Partial<ChatRequest> = {};
  for (const name of numberOptions) {
    const value = Number(options[name]);
    if (options[name].trim() !== '' && Number.isFinite(value)) fields[name] = value;
  }
  const { reasoning_effort: effort, image_quality: quality, web_search: search } = options;
  if (model.reasoning_effort?.choices?.includes(effort) === true) fields.reasoning_effort = effort;
  if (model.image_quality?.choices?.includes(quality) === true) fields.image_quality = quality;
  if (model.web_search === true && search !== '') fields.web_search = search;
  return fields;
}
