import type { ServerResponse } from 'node:http';
import type { S3Response } from './operation.ts';
import { xmlDeclaration } from './xml.ts';

export interface LateDocumentOptions {
  /** How often the client gets white space while it waits. */
  intervalMs: number;
  /** Renders the element of an error that comes after the status. */
  renderError: (error: unknown) => string;
}

/**
 * Sends a document that may take long, as S3 does: if it takes longer than the interval, the client gets the status and
 * then white space, so that it does not give up. An error after that is a document with the status 200.
 * @throws what `render` throws, if nothing has been sent by then
 */
export async function sendLateDocument(
  response: ServerResponse,
  { status, headers = {} }: Pick<S3Response, 'status' | 'headers'>,
  render: () => Promise<string>,
  { intervalMs, renderError }: LateDocumentOptions,
): Promise<void> {
  const contentType = { 'content-type': 'application/xml', ...headers };
  const timer = setInterval(() => {
    if (response.headersSent) response.write(' ');
    else response.writeHead(status, contentType).write(`${xmlDeclaration}\n`);
  }, intervalMs);
  let root: string;
  try {
    root = await render();
  } catch (error) {
    if (!response.headersSent) throw error;
    root = renderError(error);
  } finally {
    clearInterval(timer);
  }
  if (response.headersSent) {
    response.end(root);
    return;
  }
  const bytes = Buffer.from(`${xmlDeclaration}\n${root}`);
  response.writeHead(status, { ...contentType, 'content-length': String(bytes.length) }).end(bytes);
}
