import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { dist } from '../../../scripts/start/paths.ts';
import { endProcesses, identifyProcess } from '../../../scripts/processes/process-identity.ts';
import { waitFor } from '../../support/wait-for.ts';
import { makeFolder } from './fake-parts.ts';

test('npm start runs several workers and api processes, serves the metrics of all workers, and stops them all', async (t) => {
  t.timeout(180_000);
  const dataDir = makeFolder(t);
  const { PATH, HOME } = process.env;
  const args = [dist('scripts/start/main.js'), '--workers', '2', '--processes', '2'];
  const child = spawn(process.execPath, args, {
    env: {
      PATH,
      HOME,
      DATA_DIR: dataDir,
      PORT: '0',
      DEMO_ACCOUNT: 'off',
      LOG_LEVEL: 'warn',
      METRICS_PORT: '0',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await waitFor(
    () => `npm start, which printed: ${output}`,
    () => output.includes('Ready in') || child.exitCode !== null,
    90_000,
  );
  const readParts = (): Record<string, { pid: number }> =>
    (
      JSON.parse(readFileSync(join(dataDir, 'supervisor.json'), 'utf8')) as {
        parts: Record<string, { pid: number }>;
      }
    ).parts;
  const parts = readParts();
  const identities = Object.values(parts).map(({ pid }) => identifyProcess(pid));
  t.teardown(() => endProcesses(identities, 100));
  t.deepEqual(Object.keys(parts).toSorted(), [
    'api',
    'mongodb',
    'redis',
    's3',
    'smtp',
    'worker 1',
    'worker 2',
  ]);

  const [, url] = /metrics +of all workers: (\S+)\/metrics/.exec(output)!;
  const get = async (path: string): Promise<string> => await (await fetch(`${url}${path}`)).text();
  t.is(await get('/readyz'), '{"status":"ok"}');
  await waitFor('the metrics of both workers', async () => {
    const text = await get('/metrics');
    return (
      /^model_gateway_processes\{role="worker"\} 2$/m.test(text) && text.includes('{role="worker",version=')
    );
  });
  const [, apiUrl] = /API +(\S+)/.exec(output)!;
  t.regex(
    await (await fetch(apiUrl!.replace(/v1$/, 'metrics'))).text(),
    /^model_gateway_processes\{role="api"\} 2$/m,
  );

  process.kill(parts['worker 2']!.pid, 'SIGKILL');
  await waitFor('the worker to be restarted', () => {
    const { pid } = readParts()['worker 2'] ?? {};
    return pid !== undefined && pid !== parts['worker 2']!.pid;
  });
  t.regex(output, /worker 2 stopped \(SIGKILL\); restarting in \d+ ms/);
  identities.push(identifyProcess(readParts()['worker 2']!.pid));
  t.deepEqual(
    readdirSync(join(dataDir, 'logs')).filter((name) => /^(?:api|worker)/.test(name)),
    ['api.log', 'worker-1.log', 'worker-2.log'],
  );
  child.kill('SIGTERM');
  t.deepEqual(await ended, [0, null]);
  t.true(identities.every(({ pid }) => identifyProcess(pid).startedAt === null));
});
