/** An answer of the API, read to its end. */
export interface Answer<T> {
  readonly status: number;
  readonly body: T;
}

/** What every error's body holds. */
export interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string; readonly param: string | null };
  readonly detail: unknown;
}

/** A call with a key, whatever its status; `path` is below the version segment. */
export async function callApi<T = ErrorBody>(
  url: string,
  apiKey: string,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: unknown,
): Promise<Answer<T>> {
  const response = await fetch(`${url}/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${apiKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as T };
}
