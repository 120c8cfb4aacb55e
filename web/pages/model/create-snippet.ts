import type { Model } from '../../lib/models.ts';
import { config } from '../../lib/page-facts.ts';

/** Returns a command that sends a first request to a model, with the real address of the service. */
export function createSnippet({ id, type }: Pick<Model, 'id' | 'type'>, text: string): string {
  const { path, body } = describeRequest(id, type, text);
  // A single quote would end the shell's string.
  const json = JSON.stringify(body, null, 2).replaceAll("'", String.raw`'\''`);
  return [
    `curl ${config.api_base_url}${path} \\`,
    `  -H "Authorization: Bearer $API_KEY" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '${json}'`,
  ].join('\n');
}

function describeRequest(model: string, type: Model['type'], text: string): { path: string; body: object } {
  if (type === 'image') return { path: '/images/generations', body: { model, prompt: text } };
  if (type === 'embedding') return { path: '/embeddings', body: { model, input: text } };
  return { path: '/chat/completions', body: { model, messages: [{ role: 'user', content: text }] } };
}
