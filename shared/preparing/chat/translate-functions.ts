import type { ChatRequest } from '../../contract/chat.ts';
import type { Message } from '../../contract/chat-messages.ts';
import { invalidField } from '../../contract/errors.ts';

/** A chat without the older form of tools, and whether the response must have that form. */
export interface TranslatedChat {
  readonly body: ChatRequest;
  readonly wantsFunctionCall: boolean;
}

/**
 * Translates the older form of tools, which OpenAI replaced in 2023 and some clients still send: `functions`,
 * `function_call`, messages of the assistant with a `function_call`, and messages of the role `function`.
 * @throws AppError `validation_failed` if both forms are mixed, or a result has no call
 */
export function translateFunctions(body: ChatRequest): TranslatedChat {
  const messages = translateMessages(body.messages);
  // Nearly every chat is left as it is, without a copy.
  if (body.functions === undefined && body.function_call === undefined && messages === body.messages)
    return { body, wantsFunctionCall: false };
  const { functions, function_call: choice, ...rest } = body;
  const isOlder = functions !== undefined && functions !== null && functions.length > 0;
  const translated: ChatRequest = messages === body.messages ? rest : { ...rest, messages };
  if (!isOlder) return { body: translated, wantsFunctionCall: false };
  if (body.tools !== undefined && body.tools !== null && body.tools.length > 0)
    throw invalidField(['body', 'functions'], 'is the deprecated form of tools: send only one of the two');
  return {
    body: {
      ...translated,
      tools: functions.map((called) => ({ type: 'function', function: called })),
      ...(choice === undefined || choice === null ? {} : { tool_choice: translateChoice(choice) }),
    },
    wantsFunctionCall: true,
  };
}

const translateChoice = (choice: NonNullable<ChatRequest['function_call']>): string | object =>
  typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.name } };

/** @returns the same list if no message has the older form */
function translateMessages(messages: readonly Message[]): Message[] {
  if (!messages.some((message) => message.role === 'function' || (message.function_call ?? null) !== null))
    return messages as Message[];
  /** The ids of the calls of each function, and how many of them have a result. */
  const calls = new Map<string, { readonly ids: string[]; answered: number }>();
  return messages.map((message, i) => {
    const { function_call: call, ...rest } = message;
    if (message.role === 'function') {
      const { name, ...result } = rest;
      const made = calls.get(name ?? '');
      const id = made?.ids[made.answered];
      if (made === undefined || id === undefined) {
        throw invalidField(
          ['body', 'messages', i, 'name'],
          'must be the name of the function in an earlier function_call that has no result yet',
        );
      }
      made.answered += 1;
      return { ...result, role: 'tool', tool_call_id: id };
    }
    if (call === undefined || call === null) return rest;
    const id = `call_${i}`;
    const made = calls.get(call.name);
    if (made === undefined) calls.set(call.name, { ids: [id], answered: 0 });
    else made.ids.push(id);
    return { ...rest, tool_calls: [{ id, type: 'function', function: call }] };
  });
}
