import { QueryClient } from '@tanstack/preact-query';
import { ApiError } from './api-error.ts';

const maxRetries = 2;

/** What pages have read from the API. Cleared when the session ends or the account changes. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 20_000,
      retry: (count, error) => count < maxRetries && error instanceof ApiError && error.isTemporary,
      retryDelay: (count, error) =>
        error instanceof ApiError && error.retryAfterSeconds !== null
          ? Math.min(error.retryAfterSeconds, 30) * 1_000
          : 700 * 2 ** count,
    },
    // What fails is said at once. It is not done later, when nobody expects it.
    mutations: { retry: false, networkMode: 'always' },
  },
});
