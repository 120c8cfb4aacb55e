import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import type { LoadedReasoning } from '../../work/queue/job-kinds.ts';
import { locateCalls, type LocatedCall } from '../../work/conversation-hash.ts';
import type { CountingTurn } from '../../catalog/count-tokens.ts';
import type { ReasoningStore } from '../../work/reasoning-store.ts';

/**
 * Loads the stored reasoning of this conversation that a route of the model may require, oldest first. It is loaded at
 * admission, so that the worker sends exactly the reasoning for which money was reserved.
 */
export async function loadReasoning(
  store: Pick<ReasoningStore, 'load'>,
  accountId: string,
  body: ChatRequest,
  model: CatalogModel,
  turn: CountingTurn,
): Promise<LoadedReasoning[]> {
  const { messages } = body;
  const kinds = new Set<string>(model.routes.map(({ upstream }) => upstream.kind));
  kinds.delete('builtin');
  if (kinds.size === 0 || !messages.some(({ tool_calls: calls }) => calls?.length)) return [];
  const placed: LocatedCall[] = [];
  for (const { calls, characters } of locateCalls(body, model.id)) {
    placed.push(...calls);
    if (turn.spend(characters)) await turn.next();
  }
  const hashes = placed.map(({ hash }) => hash);
  const values = await store.load(accountId, hashes);
  return placed.flatMap(({ messageIndex, toolCallId, hash }) => {
    const value = values.get(hash);
    const kind = String((value as { kind?: unknown } | undefined)?.kind);
    // If the caller sends reasoning, it replaces the stored reasoning in every dialect, so that none is sent twice.
    const isSent = kind === 'openai' && Boolean(messages[messageIndex]?.reasoning_content);
    return kinds.has(kind) && !isSent ? [{ messageIndex, toolCallId, value }] : [];
  });
}
