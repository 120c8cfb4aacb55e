import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { dist } from '../../../start/paths.ts';

export interface Account {
  readonly id: string;
  readonly apiKey: string;
}

async function runAdmin(env: NodeJS.ProcessEnv, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [dist('scripts/admin/main.js'), ...args], {
    env,
  });
  return stdout;
}

/** Creates an account with the highest possible limits, so that requests are not rejected. */
export async function createAccount(env: NodeJS.ProcessEnv, balance = '1000000'): Promise<Account> {
  const args = ['account', 'create', '--balance', balance, '--rpm', '1000000', '--json'];
  const { id, api_key: apiKey } = JSON.parse(await runAdmin(env, args)) as { id: string; api_key: string };
  return { id, apiKey };
}

/** Lets an account have this many unfinished jobs. */
export async function allowJobs(env: NodeJS.ProcessEnv, accountId: string, jobs: number): Promise<void> {
  await runAdmin(env, ['account', 'limit', accountId, '--max-queued-jobs', String(jobs)]);
}
