import type { CatalogModel, UpstreamKind } from '../../catalog/catalog-schema.ts';
import { ChatRequest } from '../../contract/chat.ts';
import {
  AudioPart,
  ContentItem,
  FilePart,
  ImageUrl,
  Message,
  ToolCall,
} from '../../contract/chat-messages.ts';
import { invalidField } from '../../contract/errors.ts';
import { requestsSearch } from '../../catalog/search-allowance.ts';
import { findUnmetNeed } from '../../routing/chat-needs.ts';
import { checkContents, checkParts } from './check-parts.ts';
import { checkPriceOptions, chooseImageQuality } from './check-price-options.ts';

/** Fields that are not forwarded. A service tier would have a different price. The others were translated. */
const excludedFields = new Set(['service_tier', 'functions', 'function_call']);
/**
 * Unknown fields are accepted but not forwarded, so that everything sent to a vendor is checked, and tokenized if it is
 * billed.
 */
const forwardedFields = Object.keys(ChatRequest.properties).filter((field) => !excludedFields.has(field));
const messageFields = Object.keys(Message.properties).filter((field) => !excludedFields.has(field));
const partFields = Object.keys(ContentItem.properties);
const callFields = Object.keys(ToolCall.properties);
/** Fields of the objects nested in a part, a tool call or a message, by the name of the object. */
const innerFields: Readonly<Record<string, readonly string[]>> = {
  image_url: Object.keys(ImageUrl.properties),
  file: Object.keys(FilePart.properties),
  input_audio: Object.keys(AudioPart.properties),
  function: Object.keys(ToolCall.properties.function.properties),
  audio: ['id'],
};

/** Fields that are only forwarded in one dialect. */
const fieldsOfKinds: Readonly<Record<string, UpstreamKind>> = {
  reasoning_content: 'openai',
  // Gemini adds this field to tool calls in its responses and requires it in later requests.
  extra_content: 'gemini',
};

/**
 * Prepares the chat for a vendor, except for the token bound, which depends on the reservation. Rejects options that
 * the model does not support, fills in defaults and drops unknown fields.
 * @throws AppError `validation_failed`
 */
export function checkChat(body: ChatRequest, model: CatalogModel): ChatRequest {
  checkPriceOptions(body, model);
  checkOptions(body, model);
  checkParts(body.messages, model);
  const sent = findSentFields(model);
  const prepared = {
    ...pick(body, forwardedFields),
    ...pick(
      body,
      model.routes.flatMap(({ accepts }) => accepts),
    ),
    messages: body.messages.map((message) => pickMessage(message, sent)),
    ...fillOptions(body, model),
  } as ChatRequest;
  checkContents(prepared.messages);
  checkNeeds(prepared, model);
  return prepared;
}

function checkOptions(body: ChatRequest, { id, published }: CatalogModel): void {
  checkToolChoice(body.tool_choice);
  if (published.web_search === false && requestsSearch(body)) {
    const name = body.web_search ? 'web_search' : 'web_search_options';
    throw invalidField(
      ['body', name],
      `${id} does not support web search: remove this field, or choose another model`,
    );
  }
  const outputModalities = published.output_modalities;
  for (const [i, modality] of (body.modalities ?? []).entries()) {
    if (outputModalities !== null && !outputModalities.includes(modality)) {
      throw invalidField(['body', 'modalities', i], `must be one of: ${outputModalities.join(', ')}`);
    }
  }
}

/** Only functions can be chosen, because `tools` can contain nothing else. */
function checkToolChoice(choice: ChatRequest['tool_choice']): void {
  if (typeof choice !== 'object' || choice === null) return;
  const { type } = choice as { type?: unknown };
  if (type !== 'function' && type !== 'allowed_tools') {
    throw invalidField(['body', 'tool_choice', 'type'], 'must be one of: function, allowed_tools');
  }
}

/** The model's defaults for options that the caller leaves out. */
function fillOptions(body: ChatRequest, model: CatalogModel): Partial<ChatRequest> {
  const { published } = model;
  const effort = body.reasoning_effort ?? published.reasoning_effort?.default ?? null;
  const makesImages = published.output_modalities?.includes('image') === true;
  return {
    // A model without reasoning would reject a reasoning effort.
    reasoning_effort: published.reasoning === false ? null : effort,
    ...(makesImages
      ? {
          image_quality: chooseImageQuality(body, model),
          modalities: body.modalities ?? ['image', 'text'],
        }
      : {}),
  };
}

/**
 * Rejects a chat that no route of the model can serve. If only some routes can serve it, only those are called later.
 */
function checkNeeds(body: ChatRequest, { id, routes }: CatalogModel): void {
  const unmet = routes.map((route) => findUnmetNeed(route, body));
  const first = unmet[0] ?? null;
  if (first === null || unmet.includes(null)) return;
  const field = Object.hasOwn(body, first.field) ? first.field : 'messages';
  throw invalidField(['body', field], `${id} ${first.why}: change the request, or choose another model`);
}

function pick(value: object, names: readonly string[]): Record<string, unknown> {
  const from = value as Record<string, unknown>;
  const picked: Record<string, unknown> = {};
  for (const name of names) {
    const field = from[name];
    if (field !== undefined) picked[name] = field;
  }
  return picked;
}

/** The fields of messages and tool calls that are forwarded. */
interface SentFields {
  readonly message: readonly string[];
  readonly call: readonly string[];
}

/** The fields by kinds of upstreams, of which there are few combinations. */
const sentFields = new Map<string, SentFields>();

function findSentFields({ routes }: CatalogModel): SentFields {
  const kinds = new Set(routes.map(({ upstream }) => upstream.kind));
  const key = [...kinds].join();
  let fields = sentFields.get(key);
  if (fields === undefined) {
    const isSent = (field: string): boolean => {
      const kind = fieldsOfKinds[field];
      return kind === undefined || kinds.has(kind);
    };
    fields = {
      message: messageFields.filter(isSent),
      call: [...callFields, 'extra_content'].filter(isSent),
    };
    sentFields.set(key, fields);
  }
  return fields;
}

function pickMessage(message: Message, sent: SentFields): Message {
  const { content, tool_calls: calls } = message;
  const picked = pickDeep(message, sent.message);
  picked['content'] = Array.isArray(content) ? content.map((part) => pickDeep(part, partFields)) : content;
  if (calls !== undefined && calls !== null && calls.length > 0)
    picked['tool_calls'] = calls.map((call) => pickDeep(call, sent.call));
  else delete picked['tool_calls'];
  // Clients send a list without parts for no text, which vendors reject.
  if (Array.isArray(content) && content.length === 0)
    picked['content'] = picked['tool_calls'] === undefined ? '' : null;
  return picked as unknown as Message;
}

/** Also drops unknown fields of nested objects. */
function pickDeep(value: object, names: readonly string[]): Record<string, unknown> {
  const picked = pick(value, names);
  for (const name in innerFields) {
    const inner = picked[name];
    if (typeof inner === 'object' && inner !== null) picked[name] = pick(inner, innerFields[name]!);
  }
  return picked;
}
