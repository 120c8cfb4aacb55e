import { once } from 'node:events';
import { Agent, request, type ClientRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

/** A POST whose body a test writes by itself. */
export interface Upload {
  readonly request: ClientRequest;
  /** The answer, whenever it comes; its body is JSON. */
  readonly answer: Promise<UploadAnswer>;
}

export interface UploadAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  /** What had been sent on the connection by the time that the answer began. */
  readonly bytesSent: number;
}

export function startUpload(
  url: string,
  apiKey: string,
  headers: Readonly<Record<string, string | number>> = {},
): Upload {
  // A connection that carried another upload before has sent that one's bytes too.
  const agent = new Agent({ keepAlive: true });
  const upload = request(url, {
    method: 'POST',
    agent,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
  });
  const readResponse = async (): Promise<UploadAnswer> => {
    const [response] = (await once(upload, 'response')) as [IncomingMessage];
    const bytesSent = upload.socket?.bytesWritten ?? 0;
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text: await text(response),
      bytesSent,
    };
  };
  const answer = readResponse();
  // A test that ends an upload by itself wants no answer to it.
  answer.catch(() => undefined);
  upload.on('error', () => undefined);
  upload.once('close', () => agent.destroy());
  upload.flushHeaders();
  return { request: upload, answer };
}
