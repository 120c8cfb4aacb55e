import type { ExecutionContext } from 'ava';
import type { ApiOptions } from '../../api/options.ts';
import { startApi, type RunningApi } from '../../api/server.ts';
import { loadConfig, type Config } from '../../shared/platform/config/config.ts';
import { apiOptions, type TestStack } from './stack.ts';

/** Starts another api process of the stack, with other variables, until the test ends. @returns its URL */
export async function startOtherApi(
  t: ExecutionContext,
  stack: TestStack,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const otherEnv = { ...stack.env, ...env };
  const api = await startApi(loadConfig(otherEnv), otherEnv, stack.log, apiOptions);
  t.teardown(() => api.stop());
  return api.url;
}

/** Starts another api of the stack, which the caller stops. Its callers wait as long for look-ups as the stack's own. */
export const startApiOf = (
  stack: TestStack,
  config: Config = stack.config,
  options: Partial<ApiOptions> = {},
): Promise<RunningApi> => startApi(config, stack.env, stack.log, { ...apiOptions, ...options });
