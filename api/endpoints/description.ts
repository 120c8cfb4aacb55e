import { buildDescription } from '../../shared/contract/openapi/build-description.ts';
import type { Description } from '../../shared/contract/openapi/description.ts';
import { operations } from '../../shared/contract/operations.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { renderDocs } from '../pages/docs/render-docs.ts';
import { PreparedBody } from '../present/prepared-body.ts';
import type { Services } from '../services.ts';
import { sendPrepared, servePrepared } from './send-prepared.ts';

/** Changes only with the program, but a new version of it should not be hidden for long. */
const cacheControl = 'public, max-age=300';

const describe = ({ publicUrl }: Services): Description =>
  buildDescription(Object.values(operations), publicUrl);

export function getDescription(services: Services) {
  return servePrepared(() => PreparedBody.ofJson(describe(services)), cacheControl);
}

export function getDocs(services: Services) {
  let page: { readonly body: PreparedBody; readonly contentSecurityPolicy: string } | null = null;
  return async (context: ApiContext): Promise<void> => {
    page ??= prepareDocs(services);
    context.set('content-security-policy', page.contentSecurityPolicy);
    context.set('x-content-type-options', 'nosniff');
    context.set('referrer-policy', 'no-referrer');
    await sendPrepared(context, page.body, cacheControl);
  };
}

function prepareDocs(services: Services) {
  const { html, contentSecurityPolicy } = renderDocs(describe(services));
  return { body: new PreparedBody(html, 'text/html; charset=utf-8'), contentSecurityPolicy };
}
