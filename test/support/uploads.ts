import { once } from 'node:events';
import { Agent, request, type ClientRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

/** A POST whose body is written by the test. */
export interface Upload {
  readonly request: ClientRequest;
  /** The response, which may arrive before the body is sent completely; its body is JSON. */
  readonly answer: Promise<UploadResponse>;
}

export interface UploadResponse {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  /** Bytes sent on the connection by the time the response started. */
  readonly bytesSent: number;
}

export function startUpload(
  url: string,
  apiKey: string,
  headers: Readonly<Record<string, string | number>> = {},
): Upload {
  // Never shared between uploads, because `bytesSent` would include the bytes of an earlier upload.
  const agent = new Agent({ keepAlive: true });
  const upload = request(url, {
    method: 'POST',
    agent,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
  });
  const readResponse = async (): Promise<UploadResponse> => {
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
  // A test that aborts its upload does not expect a response.
  answer.catch(() => undefined);
  upload.on('error', () => undefined);
  upload.once('close', () => agent.destroy());
  upload.flushHeaders();
  return { request: upload, answer };
}
