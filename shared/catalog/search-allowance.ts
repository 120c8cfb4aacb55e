import type { CatalogModel } from './catalog-schema.ts';
import type { ChatRequest } from '../contract/chat.ts';

type Body = Pick<ChatRequest, 'web_search' | 'web_search_options'>;

/** How many times an Anthropic model may pause while it searches. The prompt is billed again after each pause. */
export const maxPauses = 2;

export function requestsSearch({ web_search: search, web_search_options: options }: Body): boolean {
  return Boolean(search) || (search !== false && (options ?? null) !== null);
}

/** Whether a chat may search the web: it requests it, or its model always may. */
export function maySearch(body: Body, { alwaysMaySearch }: Pick<CatalogModel, 'alwaysMaySearch'>): boolean {
  return alwaysMaySearch || requestsSearch(body);
}

/** The maximum number of calls that a chat makes to its vendor. */
export function maxVendorCalls(body: Body, { routes }: Pick<CatalogModel, 'routes'>): number {
  const mayPause = requestsSearch(body) && routes.some(({ upstream }) => upstream.kind === 'anthropic');
  return mayPause ? 1 + maxPauses : 1;
}

/**
 * The maximum number of prompt tokens to reserve for a chat that may search. Search results also count as prompt
 * tokens.
 * @param calls number of calls to the vendor to reserve tokens for
 */
export function allowForSearch(model: CatalogModel, promptTokens: number, calls: number): number {
  return Math.max(promptTokens, Math.min(model.context, promptTokens + model.tokensPerSearch)) * calls;
}
