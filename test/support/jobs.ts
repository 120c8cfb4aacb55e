import type { TestAccount, TestStack } from './stack.ts';
import { waitFor } from './wait-for.ts';

/** A job in an API response. */
export interface JobBody {
  readonly id: string;
  readonly status: string;
  readonly operation: string;
  readonly model: string;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly expires_at: string | null;
  readonly deadline_at: string | null;
  readonly cancel_at: string | null;
  readonly attempts: number;
  readonly cancel_requested: boolean;
  readonly position: number | null;
  readonly eta_seconds: number | null;
  readonly progress: number;
  readonly cost_request: number | null;
  readonly free_request: boolean | null;
  readonly error: { readonly code: string; readonly message: string; readonly type: string } | null;
  readonly webhook: Readonly<Record<string, unknown>> | null;
  readonly urls: {
    readonly get: string;
    readonly cancel: string;
    readonly events: string;
    readonly stream: string | null;
  };
  readonly response_error?: { readonly code: string; readonly message: string; readonly type: string } | null;
  readonly response?: Readonly<Record<string, unknown>> | null;
}

export const respondAsync = { prefer: 'respond-async' };

export const hasEnded = ({ status }: Pick<JobBody, 'status'>): boolean =>
  ['succeeded', 'failed', 'cancelled'].includes(status);

/** Calls the jobs API with the key of an account. */
export async function callJobsApi(
  { url }: Pick<TestStack, 'url'>,
  { apiKey }: TestAccount,
  path: string,
  init: RequestInit = {},
): Promise<Response> {
  const headers = { authorization: `Bearer ${apiKey}`, ...(init.headers as Record<string, string>) };
  return await fetch(`${url}/v1/jobs${path}`, { ...init, headers });
}

export async function createJob(
  stack: TestStack,
  { apiKey }: TestAccount,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<JobBody> {
  const response = await stack.post(path, apiKey, body, { ...respondAsync, ...headers });
  const text = await response.text();
  if (response.status !== 202) throw new Error(`no job: ${response.status} ${text}`);
  return JSON.parse(text) as JobBody;
}

export async function readJob(stack: TestStack, account: TestAccount, id: string): Promise<JobBody> {
  return (await (await callJobsApi(stack, account, `/${id}`)).json()) as JobBody;
}

export async function waitForJob(
  stack: TestStack,
  account: TestAccount,
  id: string,
  matches: (job: JobBody) => boolean = hasEnded,
): Promise<JobBody> {
  return await waitFor('the job', async () => {
    const job = await readJob(stack, account, id);
    return matches(job) ? job : null;
  });
}
