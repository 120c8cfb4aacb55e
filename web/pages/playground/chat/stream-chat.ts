import type { components } from '../../../generated/api.d.ts';
import { sendRequest } from '../../../lib/api.ts';
import { ApiError } from '../../../lib/api-error.ts';
import { readEvents } from '../../../lib/read-events.ts';
import { readChatUsage, type Usage } from '../shared/usage.ts';
import type { ChatRequest } from './chat-request.ts';

type ChatChunk = components['schemas']['ChatChunk'];

/** What comes in the course of a stream. */
export interface ChatListener {
  onStart(requestId: string | null): void;
  onPosition(position: number): void;
  onText(text: string): void;
  onReasoning(text: string): void;
  onFinish(reason: string): void;
  onUsage(usage: Usage): void;
}

/**
 * Sends a chat and reports its parts as they come.
 * @throws ApiError; `AbortError` once the signal is aborted
 */
export async function streamChat(
  body: ChatRequest,
  signal: AbortSignal,
  listener: ChatListener,
): Promise<void> {
  const response = await sendRequest(
    new Request(new URL('/v1/chat/completions', location.origin), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    }),
  );
  listener.onStart(response.headers.get('x-request-id'));
  if (!response.ok || response.body === null)
    throw ApiError.ofResponse(response, await response.json().catch(() => null));
  const comment = (text: string): void => {
    const position = /position=(\d+)/.exec(text)?.[1];
    if (position !== undefined) listener.onPosition(Number(position));
  };
  let isComplete = false;
  try {
    for await (const { data } of readEvents(response.body, comment)) {
      if (data === '[DONE]') isComplete = true;
      else report(JSON.parse(data) as ChatChunk | { readonly error: unknown }, response, listener);
    }
  } catch (error) {
    if (error instanceof ApiError || signal.aborted) throw error;
    throw ApiError.ofNetwork();
  }
  if (!isComplete) throw ApiError.ofNetwork();
}

function report(
  chunk: ChatChunk | { readonly error: unknown },
  response: Response,
  listener: ChatListener,
): void {
  if ('error' in chunk) throw ApiError.ofStream(chunk, response);
  for (const { delta, finish_reason: finishReason } of chunk.choices) {
    if (delta.reasoning_content) listener.onReasoning(delta.reasoning_content);
    if (delta.content) listener.onText(delta.content);
    if (delta.refusal) listener.onText(delta.refusal);
    if (finishReason !== null) listener.onFinish(finishReason);
  }
  if (chunk.usage) listener.onUsage(readChatUsage(chunk.usage));
}
