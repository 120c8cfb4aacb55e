/** An API response, read to its end. */
export interface ApiResponse<T> {
  readonly status: number;
  readonly body: T;
}

/** The body of every error. */
export interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string; readonly param: string | null };
  readonly detail: unknown;
}

/** Calls the API with a key, and returns the response with any status. `path` comes after the version segment. */
export async function callApi<T = ErrorBody>(
  url: string,
  apiKey: string,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: unknown,
): Promise<ApiResponse<T>> {
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
