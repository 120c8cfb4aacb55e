import type { CatalogModel } from '../catalog/catalog-schema.ts';

/** How often Anthropic's models may pause in their searches and be let go on: each time the prompt is counted again. */
export const mostPauses = 2;

/** The most tokens of prompt that a chat which may search is reserved for: what was found counts as prompt, too. */
export function allowForSearch(model: CatalogModel, promptTokens: number): number {
  const mayPause = model.routes.some(({ upstream }) => upstream.kind === 'anthropic');
  const perCall = Math.max(promptTokens, Math.min(model.context, promptTokens + model.tokensPerSearch));
  return perCall * (mayPause ? 1 + mostPauses : 1);
}
