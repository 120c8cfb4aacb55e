import type { ErrorBody } from './call-api.ts';

/** The code of an error's body. @throws Error where the answer has another status */
export async function readErrorCode(response: Response, status: number): Promise<string> {
  const text = await response.text();
  if (response.status !== status) throw new Error(`${response.status} in place of ${status}: ${text}`);
  return (JSON.parse(text) as ErrorBody).error.code;
}
