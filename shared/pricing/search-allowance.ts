import type { CatalogModel } from '../catalog/catalog-schema.ts';
import type { ChatRequest } from '../contract/chat.ts';

type Body = Pick<ChatRequest, 'web_search' | 'web_search_options'>;

/** How often Anthropic's models may pause in their searches and be let go on: each time the prompt is counted again. */
export const mostPauses = 2;

export function asksSearch({ web_search: search, web_search_options: options }: Body): boolean {
  return Boolean(search) || (search !== false && (options ?? null) !== null);
}

/** Whether a chat may search: because it asks for it, or because its model does so whatever it is asked. */
export function maySearch(body: Body, { searchesUnasked }: Pick<CatalogModel, 'searchesUnasked'>): boolean {
  return searchesUnasked || asksSearch(body);
}

/** The most calls that a chat makes at its vendor. */
export function countSearchCalls(body: Body, { routes }: Pick<CatalogModel, 'routes'>): number {
  const mayPause = asksSearch(body) && routes.some(({ upstream }) => upstream.kind === 'anthropic');
  return mayPause ? 1 + mostPauses : 1;
}

/**
 * The most tokens of prompt that a chat which may search is reserved for: what was found counts as prompt, too.
 * @param calls how many calls at the vendor are counted
 */
export function allowForSearch(model: CatalogModel, promptTokens: number, calls: number): number {
  return Math.max(promptTokens, Math.min(model.context, promptTokens + model.tokensPerSearch)) * calls;
}
