import { execFile } from 'node:child_process';
import { dist } from './paths.ts';
import { loadSecrets, saveSecrets } from './secrets-file.ts';

export interface DemoAccount {
  readonly apiKey: string;
}

/**
 * The account that the printed curl lines use; made on the first start, and again where its database is another.
 * @param env with the endpoints of the running stack
 * @throws Error with the words of the admin command
 */
export async function ensureDemoAccount(dataDir: string, env: NodeJS.ProcessEnv): Promise<DemoAccount> {
  const secrets = loadSecrets(dataDir);
  if (secrets.demoApiKey !== null && (await isKnown(secrets.demoApiKey, env)))
    return { apiKey: secrets.demoApiKey };
  const output = await runAdmin(
    ['account', 'create', '--balance', '100', '--free-requests', '10', '--json'],
    env,
  );
  const { api_key: apiKey } = JSON.parse(output) as { api_key: string };
  saveSecrets(dataDir, { ...secrets, demoApiKey: apiKey });
  return { apiKey };
}

async function isKnown(apiKey: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  try {
    await runAdmin(['account', 'show', apiKey, '--json'], env);
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === 1) return false;
    throw error;
  }
}

function runAdmin(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const entry = dist('scripts/admin/main.js');
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [entry, ...args], { env, timeout: 30_000 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      // Not the error's own message, which holds the command and so the key.
      else
        reject(
          Object.assign(new Error(stderr.trim() || 'the admin command was ended'), { code: error.code }),
        );
    });
  });
}
