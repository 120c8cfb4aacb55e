import { AppError } from '../../../shared/contract/errors.ts';
import { buildDescription } from '../../description/build-description.ts';
import type { Description } from '../../description/description.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { renderDocs } from '../../pages/docs/render-docs.ts';
import { PreparedBody } from '../../http/responses/prepared-body.ts';
import type { Services } from '../../services.ts';
import { sendPrepared, servePrepared } from '../../responses/send-prepared.ts';

/** The description changes only with the program version, but a new version should be visible soon. */
const cacheControl = 'public, max-age=300';

const describe = ({ publicUrl }: Services): Description =>
  buildDescription(Object.values(operations), publicUrl);

export const getDescription = defineEndpoint(operations.getDescription, [beginInTurns], (services) =>
  servePrepared(() => PreparedBody.ofJson(describe(services)), cacheControl),
);

export const getDocs = defineEndpoint(operations.getDocs, [beginInTurns], (services) => {
  let page: { readonly body: PreparedBody; readonly contentSecurityPolicy: string } | null = null;
  return async (context) => {
    if (!services.config.pages.isServed)
      throw new AppError('not_found', { message: 'Pages are not served here.' });
    page ??= prepareDocs(services);
    context.set('content-security-policy', page.contentSecurityPolicy);
    context.set('x-content-type-options', 'nosniff');
    context.set('referrer-policy', 'no-referrer');
    await sendPrepared(context, page.body, cacheControl);
  };
});

function prepareDocs(services: Services) {
  const { html, contentSecurityPolicy } = renderDocs(describe(services));
  return { body: new PreparedBody(html, 'text/html; charset=utf-8'), contentSecurityPolicy };
}
