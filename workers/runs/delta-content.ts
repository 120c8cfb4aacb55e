import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';

type Delta = Readonly<Record<string, unknown>>;

/**
 * Whether a delta may contain the model's full reasoning instead of a summary. OpenAI-compatible servers usually send
 * the full reasoning, in one of two fields; Anthropic and Gemini send summaries.
 */
export function isFullReasoning(
  { reasoning_content: reasoningContent, reasoning }: Delta,
  route: CatalogRoute | null,
): boolean {
  return Boolean(reasoningContent || reasoning) && route?.upstream.kind === 'openai';
}

/** Whether a delta contains any model output besides the opening role. */
export function isOutput(delta: Delta): boolean {
  for (const key in delta) {
    const value = delta[key];
    if (key !== 'role' && value !== null && value !== '') return true;
  }
  return false;
}
