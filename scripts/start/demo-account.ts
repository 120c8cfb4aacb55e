import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { DemoAccount, KnownDemo } from './find-demo-account.ts';
import { dist } from './paths.ts';
import { loadSecrets, saveSecrets } from './secrets-file.ts';

const timeoutMs = 30_000;

/**
 * Ensures that the account used by the printed curl commands exists. It is created on the first start, and again if the
 * database is a different one.
 * @param env includes the endpoints of the running stack
 * @throws Error with a message for the user
 */
export async function ensureDemoAccount(dataDir: string, env: NodeJS.ProcessEnv): Promise<DemoAccount> {
  const secrets = loadSecrets(dataDir);
  const demo = await runFinder({ id: secrets.demoAccountId, apiKey: secrets.demoApiKey }, env);
  if (demo.id !== secrets.demoAccountId || demo.apiKey !== secrets.demoApiKey)
    saveSecrets(dataDir, { ...secrets, demoAccountId: demo.id, demoApiKey: demo.apiKey });
  return demo;
}

/** Runs in a separate process, so that the supervisor does not load the stores' drivers. */
async function runFinder(known: KnownDemo, env: NodeJS.ProcessEnv): Promise<DemoAccount> {
  const child = spawn(process.execPath, [dist('scripts/start/find-demo-account.js')], {
    env,
    timeout: timeoutMs,
  });
  child.stdin.on('error', () => undefined); // The process ended before it read its input. Its exit is reported.
  // Do not pass it as an argument, because process lists show arguments.
  child.stdin.end(JSON.stringify(known));
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  if (code !== 0) throw new Error(stderr.trim() || 'the command was terminated');
  return JSON.parse(stdout) as DemoAccount;
}
