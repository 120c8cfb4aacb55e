import { quoteShell } from '../../api/pages/quote-shell.ts';
import type { Model } from './models.ts';
import { config } from './page-facts.ts';

/** Returns a command that sends a first request to a model, with the real address of the service. */
export function createSnippet({ id, type }: Pick<Model, 'id' | 'type'>, text: string): string {
  const { path, fields } = describeRequest(type, text);
  const lines = Object.entries({ model: id, ...fields }).map(
    ([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  );
  return [
    `curl ${config.api_base_url}${path} \\`,
    `  -H "Authorization: Bearer $API_KEY" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d ${quoteShell(`{\n${lines.join(',\n')}\n  }`)}`,
  ].join('\n');
}

function describeRequest(type: Model['type'], text: string): { path: string; fields: object } {
  if (type === 'image') return { path: '/images/generations', fields: { prompt: text } };
  if (type === 'embedding') return { path: '/embeddings', fields: { input: text } };
  return { path: '/chat/completions', fields: { messages: [{ role: 'user', content: text }] } };
}
