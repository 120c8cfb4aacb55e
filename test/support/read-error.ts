import type { ErrorBody } from './call-api.ts';

/** The error code in a response body. @throws Error if the response has another status */
export async function readErrorCode(response: Response, status: number): Promise<string> {
  const text = await response.text();
  if (response.status !== status) throw new Error(`${response.status} instead of ${status}: ${text}`);
  return (JSON.parse(text) as ErrorBody).error.code;
}
