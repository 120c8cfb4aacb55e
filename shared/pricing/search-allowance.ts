import type { CatalogModel } from '../catalog/catalog-schema.ts';
import type { ChatRequest } from '../contract/chat.ts';

/** How often Anthropic's models may pause in their searches and be let go on: each time the prompt is counted again. */
export const mostPauses = 2;

export function asksSearch(body: Pick<ChatRequest, 'web_search' | 'web_search_options'>): boolean {
  const { web_search: search, web_search_options: options } = body;
  return Boolean(search) || (search !== false && (options ?? null) !== null);
}

/** The most calls that a chat which may search makes at its vendor. */
export function countSearchCalls(model: CatalogModel): number {
  const mayPause = model.routes.some(({ upstream }) => upstream.kind === 'anthropic');
  return mayPause ? 1 + mostPauses : 1;
}

/**
 * The most tokens of prompt that a chat which may search is reserved for: what was found counts as prompt, too.
 * @param calls how many calls at the vendor are counted
 */
export function allowForSearch(
  model: CatalogModel,
  promptTokens: number,
  calls = countSearchCalls(model),
): number {
  return Math.max(promptTokens, Math.min(model.context, promptTokens + model.tokensPerSearch)) * calls;
}
