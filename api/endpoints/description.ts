import { buildDescription } from '../../shared/contract/openapi/build-description.ts';
import type { Description } from '../../shared/contract/openapi/description.ts';
import { operations } from '../../shared/contract/operations.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { renderDocs, type DocsPage } from '../pages/docs/render-docs.ts';
import type { Services } from '../services.ts';

/** Changes only with the program, but a new version of it should not be hidden for long. */
const cacheControl = 'public, max-age=300';

const describe = ({ publicUrl }: Services): Description =>
  buildDescription(Object.values(operations), publicUrl);

export function getDescription(services: Services) {
  let text: string | null = null;
  return async (context: ApiContext): Promise<void> => {
    text ??= JSON.stringify(describe(services));
    context.set('cache-control', cacheControl);
    context.type = 'application/json';
    context.body = text;
  };
}

export function getDocs(services: Services) {
  let page: DocsPage | null = null;
  return async (context: ApiContext): Promise<void> => {
    page ??= renderDocs(describe(services));
    context.set('cache-control', cacheControl);
    context.set('content-security-policy', page.contentSecurityPolicy);
    context.set('x-content-type-options', 'nosniff');
    context.set('referrer-policy', 'no-referrer');
    context.type = 'text/html';
    context.body = page.html;
  };
}
