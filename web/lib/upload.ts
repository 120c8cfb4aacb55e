import { addSession } from './api.ts';
import { ApiError } from './api-error.ts';

/**
 * Sends a form, and says how much of it has been sent, which `fetch` does not.
 * @param onProgress called with a share from 0 to 1
 * @returns the body of the response
 * @throws ApiError; `AbortError` once the signal is aborted
 */
export async function uploadForm<Result>(
  path: string,
  form: FormData,
  { onProgress, signal }: { readonly onProgress: (share: number) => void; readonly signal: AbortSignal },
): Promise<Result> {
  const request = new Request(new URL(path, location.origin), { method: 'POST' });
  await addSession(request);
  signal.throwIfAborted();
  return await new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    call.open('POST', request.url);
    request.headers.forEach((value, name) => call.setRequestHeader(name, value));
    call.responseType = 'text';
    call.upload.addEventListener('progress', ({ loaded, total }) =>
      onProgress(total === 0 ? 0 : loaded / total),
    );
    call.addEventListener('load', () => {
      const body = parse(call.responseText);
      if (call.status < 300) resolve(body as Result);
      else reject(ApiError.ofResponse(toResponse(call), body));
    });
    call.addEventListener('error', () => reject(ApiError.ofNetwork()));
    signal.addEventListener('abort', () => {
      call.abort();
      reject(signal.reason as Error);
    });
    call.send(form);
  });
}

/** Errors are read from the status and the headers of a response. */
function toResponse(call: XMLHttpRequest): Response {
  const headers = new Headers();
  for (const name of ['retry-after', 'x-request-id']) {
    const value = call.getResponseHeader(name);
    if (value !== null) headers.set(name, value);
  }
  return new Response(null, { status: call.status, headers });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
