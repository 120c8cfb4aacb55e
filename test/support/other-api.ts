import type { ExecutionContext } from 'ava';
import { startApi } from '../../api/server.ts';
import { loadConfig } from '../../shared/platform/config/config.ts';
import type { TestStack } from './stack.ts';

/** Starts another api process of the stack, with other variables, until the test ends. @returns its URL */
export async function startOtherApi(
  t: ExecutionContext,
  stack: TestStack,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const otherEnv = { ...stack.env, ...env };
  const api = await startApi(loadConfig(otherEnv), otherEnv, stack.log);
  t.teardown(() => api.stop());
  return api.url;
}
