import type { OperationExample } from '../../shared/contract/operation.ts';

/**
 * An account that was credited 100 roubles, redeemed a code worth 50 one day, and sent the chats and embeddings of the
 * other examples the next day.
 */
const account = { id: '019aa089-6818-7b40-9d15-3c8e5a6f0b27', user_type: 'default' };

export const profileExample: OperationExample = {
  response: {
    ...account,
    last_used_at: '2025-11-21T12:07:22.603Z',
    balance: 149.99448,
    total_balance_added: 150,
    free_requests: 0,
    request_count_last_hour: 3,
    total_cost_request_last_hour: 0.00552,
    average_rpm: 0.05,
    requests_per_minute: 60,
  },
};

export const redeemExample: OperationExample = {
  body: { code: '7KQM-9XFD-3TRW-M8PA-2VBH' },
  response: {
    ...account,
    balance: 150,
    total_balance_added: 150,
    free_requests: 0,
    add_balance: 50,
    add_free_requests: 0,
  },
};

export const refillLogsExample: OperationExample = {
  query: { page: 1, page_size: 20 },
  response: {
    total_count: 1,
    total_pages: 1,
    page: 1,
    page_size: 20,
    items: [
      {
        created_at: '2025-11-20T09:15:04.000Z',
        refill_code_redeemed: '7KQM-9XFD-3TRW-M8PA-2VBH',
        balance_added: '50',
        free_requests_added: 0,
        source: 'code',
        note: null,
      },
    ],
  },
};

export const statsExample: OperationExample = {
  response: {
    period_start_date: '2025-10-22',
    period_end_date: '2025-11-21',
    total_requests: 3,
    total_prompt_tokens: 23,
    total_completion_tokens: 31,
    total_cost: 0.00552,
    total_free_requests: 0,
    daily_stats: [
      {
        stat_date: '2025-11-21',
        request_count: 3,
        prompt_tokens: 23,
        cache_read_tokens: 0,
        completion_tokens: 31,
        cost_request: 0.00552,
        free_requests: 0,
      },
    ],
  },
};

const succeeded = { success: true, response_code: 200, details: null, user_ip: '203.0.113.7' };
const paid = {
  cache_read_tokens: 0,
  reasoning_tokens: null,
  shortfall: 0,
  free_requests: false,
  is_free_request: false,
  estimated: false,
};
const chatRates = { prompt: 50, cached_prompt: 50, cache_write: 50, completion: 150 };
const embeddingRates = { prompt: 10, cached_prompt: 10, cache_write: 10, completion: 0 };
const uncached = { cached_prompt: 0, cache_write: 0 };

export const requestLogsExample: OperationExample = {
  query: { page: 1 },
  response: {
    total_count: 3,
    total_pages: 1,
    page: 1,
    page_size: 300,
    totals: { requests: 3, prompt_tokens: 23, completion_tokens: 31, cost: 0.00552 },
    has_exact_total: true,
    items: [
      {
        created_at: '2025-11-21T12:07:22.603Z',
        request_id: '019aa64f-daeb-7d0e-8c44-5e9f0d6a1b27',
        ...succeeded,
        model_name: 'use-lite-en-512',
        prompt_tokens: 7,
        completion_tokens: 0,
        total_time: 0.018,
        first_token_seconds: null,
        idempotency_key: false,
        cost_request: 0.00007,
        rates: embeddingRates,
        quantities: { prompt: 7, ...uncached, completion: 0 },
        ...paid,
      },
      {
        created_at: '2025-11-21T12:07:21.874Z',
        request_id: '019aa64f-d812-7e03-b7d4-61c0a95f2e8a',
        ...succeeded,
        model_name: 'demo-echo',
        prompt_tokens: 8,
        completion_tokens: 6,
        total_time: 0.036,
        first_token_seconds: 0.012,
        idempotency_key: false,
        cost_request: 0.0013,
        rates: chatRates,
        quantities: { prompt: 8, ...uncached, completion: 6 },
        ...paid,
      },
      {
        created_at: '2025-11-21T12:07:21.310Z',
        request_id: '019aa64f-d5de-7c5b-9a51-0c2f7e8d4b16',
        ...succeeded,
        model_name: 'demo-echo',
        prompt_tokens: 8,
        completion_tokens: 25,
        total_time: 0.021,
        first_token_seconds: null,
        idempotency_key: false,
        cost_request: 0.00415,
        rates: chatRates,
        quantities: { prompt: 8, ...uncached, completion: 25 },
        ...paid,
      },
    ],
  },
};

export const requestLogsCsvExample: OperationExample = {
  response:
    'created_at,request_id,model_name,success,response_code,details,prompt_tokens\r\n' +
    '2025-11-21T12:07:21.874Z,019aa64f-d812-7e03-b7d4-61c0a95f2e8a,demo-echo,true,200,,8\r\n',
};

export const newKeyExample: OperationExample = {
  response: { new_api_key: 'mg-8sJ2qVn0xR4tYb6LkWc1ZfUe9hPmGdA3oIiT5wXvQyE' },
};
