import type { ApiContext } from '../middleware/request-context.ts';
import { contentCodings, type ContentCoding, type PreparedBody } from '../present/prepared-body.ts';

/** Answers with a body that is there already, in the coding that the caller takes; with 304 where it has it. */
export async function sendPrepared(
  context: ApiContext,
  body: PreparedBody,
  cacheControl: string,
  status = 200,
): Promise<void> {
  const coding = body.isCompressible ? chooseCoding(context) : null;
  const { bytes, etag } = coding === null ? body.plain : await body.compress(coding);
  context.status = status;
  context.set('cache-control', cacheControl);
  context.set('etag', etag);
  if (body.isCompressible) context.vary('accept-encoding');
  if (context.get('if-none-match') !== '' && context.fresh) {
    context.status = 304;
    return;
  }
  if (coding !== null) context.set('content-encoding', coding);
  context.set('content-type', body.contentType);
  context.body = bytes;
}

/** A handler that answers with one body for all callers, which is made when it is first asked for. */
export function servePrepared(prepare: () => PreparedBody, cacheControl: string) {
  let body: PreparedBody | null = null;
  return async (context: ApiContext): Promise<void> => {
    body ??= prepare();
    await sendPrepared(context, body, cacheControl);
  };
}

/** Browsers send thirty characters. Reading thousands of them takes longer than all else that such an answer costs. */
const longestAcceptEncoding = 300;

function chooseCoding(context: ApiContext): ContentCoding | null {
  const { length } = context.get('accept-encoding');
  if (length === 0 || length > longestAcceptEncoding) return null;
  return contentCodings.find((coding) => context.acceptsEncodings(coding) === coding) ?? null;
}
