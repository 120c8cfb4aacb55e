import { setTimeout as delay } from 'node:timers/promises';
import type { Health } from '../../shared/contract/system.ts';
import { getJson } from './loopback.ts';

const pollIntervalMs = 40;
const noticeAfterMs = 15_000;
/** What must work before the gateway counts as started. The other checks may be down for a while. */
const startChecks = ['redis', 'mongodb', 's3', 'workers'] as const;

export interface HealthProgress {
  onListening(): void;
  onWorkers(): void;
  /** Called from time to time if startup takes long. */
  onWaiting(missing: string): void;
}

/**
 * Resolves when the api and all its dependencies are healthy.
 * @throws AbortError
 */
export async function waitForHealth(
  url: string,
  progress: HealthProgress,
  signal: AbortSignal,
): Promise<void> {
  let isListening = false;
  let hasWorkers = false;
  let noticeAtMs = Date.now() + noticeAfterMs;
  for (;;) {
    const health = (await getJson(`${url}/v1/health`)) as Partial<Health> | null;
    if (health?.checks !== undefined && !isListening) progress.onListening();
    isListening ||= health?.checks !== undefined;
    if (health?.checks?.workers === 'ok' && !hasWorkers) progress.onWorkers();
    hasWorkers ||= health?.checks?.workers === 'ok';
    if (health?.checks !== undefined && startChecks.every((name) => health.checks?.[name] === 'ok')) return;
    if (Date.now() > noticeAtMs) {
      progress.onWaiting(describeMissing(health));
      noticeAtMs = Date.now() + noticeAfterMs;
    }
    await delay(pollIntervalMs, undefined, { signal });
  }
}

function describeMissing(health: Partial<Health> | null): string {
  const checks = health?.checks;
  if (checks === undefined) return 'the api does not respond yet';
  const down = startChecks.filter((name) => checks[name] !== 'ok');
  return `not ready yet: ${down.join(', ')}`;
}
