import type { OperationExample } from './operation.ts';

export const profileExample: OperationExample = {
  response: {
    id: '6920a3d4f1b2c87e5d0934ab',
    user_type: 'default',
    last_used_at: '2025-11-21T12:07:22.000Z',
    balance: 87.4312,
    total_balance_added: 100,
    free_requests: 7,
    request_count_last_hour: 12,
    total_cost_request_last_hour: 0.6214,
    average_rpm: 0.2,
    requests_per_minute: 60,
  },
};

export const redeemExample: OperationExample = {
  body: { code: '7KQM-9XFD-3TRW-M8PA-2VBH' },
  response: {
    id: '6920a3d4f1b2c87e5d0934ab',
    user_type: 'default',
    last_used_at: '2025-11-21T12:07:22.000Z',
    balance: 137.4312,
    total_balance_added: 150,
    free_requests: 7,
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
      },
    ],
  },
};

export const statsExample: OperationExample = {
  response: {
    period_start_date: '2025-10-22',
    period_end_date: '2025-11-21',
    total_requests: 214,
    total_prompt_tokens: 48_120,
    total_completion_tokens: 20_655,
    total_cost: 12.5688,
    total_free_requests: 3,
    daily_stats: [
      {
        stat_date: '2025-11-20',
        request_count: 214,
        prompt_tokens: 48_120,
        cache_read_tokens: 12_288,
        completion_tokens: 20_655,
        cost_request: 12.5688,
        free_requests: 3,
      },
    ],
  },
};

export const requestLogsExample: OperationExample = {
  query: { page: 1 },
  response: {
    total_count: 1,
    total_pages: 1,
    page: 1,
    page_size: 300,
    items: [
      {
        created_at: '2025-11-21T12:07:22.000Z',
        success: true,
        response_code: 200,
        request_id: '019aa2f4-6d0e-7c5b-9a51-0c2f7e8d4b16',
        details: null,
        user_ip: '203.0.113.7',
        model_name: 'demo-echo',
        prompt_tokens: 13,
        cache_read_tokens: 0,
        completion_tokens: 5,
        total_time: 0.412,
        cost_request: 0.0014,
        free_requests: false,
        is_free_request: false,
        estimated: false,
      },
    ],
  },
};

export const newKeyExample: OperationExample = {
  response: { new_api_key: 'mg-8sJ2qVn0xR4tYb6LkWc1ZfUe9hPmGdA3oIiT5wXvQyE' },
};
