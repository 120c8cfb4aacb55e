import { ApiError } from './api-error.ts';

/** Fetches. @throws ApiError without a response; `AbortError` if the caller aborts */
export async function fetchOrThrow(target: string | Request, init?: RequestInit): Promise<Response> {
  try {
    return await fetch(target, init);
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') throw error;
    throw ApiError.ofNetwork();
  }
}
