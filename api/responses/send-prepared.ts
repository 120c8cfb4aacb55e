import { contentCodings, type ContentCoding, type PreparedBody } from '../http/responses/prepared-body.ts';
import type { ApiContext } from '../http/request/context.ts';

/** Sends a prepared body in an encoding that the client accepts, or a 304 if the client already has it. */
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

/** Creates a handler that sends the same body to all callers. The body is created on first use. */
export function servePrepared(prepare: () => PreparedBody, cacheControl: string) {
  let body: PreparedBody | null = null;
  return async (context: ApiContext): Promise<void> => {
    body ??= prepare();
    await sendPrepared(context, body, cacheControl);
  };
}

/** Browsers send some thirty characters. Parsing thousands would take longer than the rest of the response. */
const maxAcceptEncodingLength = 300;

function chooseCoding(context: ApiContext): ContentCoding | null {
  const { length } = context.get('accept-encoding');
  if (length === 0 || length > maxAcceptEncodingLength) return null;
  return contentCodings.find((coding) => context.acceptsEncodings(coding) === coding) ?? null;
}
