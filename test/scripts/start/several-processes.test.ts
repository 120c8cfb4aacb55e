import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { endProcesses } from '../../../scripts/processes/process-identity.ts';
import { findStablePort } from '../../support/stable-port.ts';
import { waitFor } from '../../support/wait-for.ts';
import { isGone, startAll } from './start-all.ts';

test('npm start runs several workers and api processes, serves the metrics of all workers, and stops them all', async (t) => {
  t.timeout(180_000);
  const metricsPort = await findStablePort();
  const { dataDir, child, ended, parts, findParts, readOutput } = await startAll(t, {
    args: ['--workers', '2', '--processes', '2'],
    env: { METRICS_PORT: String(metricsPort) },
  });
  t.deepEqual(parts.map(({ name }) => name).toSorted(), [
    'api',
    'mongodb',
    'redis',
    's3',
    'smtp',
    'worker 1',
    'worker 2',
  ]);

  const url = `http://127.0.0.1:${metricsPort}`;
  const get = async (path: string): Promise<string> => await (await fetch(`${url}${path}`)).text();
  t.regex(readOutput(), new RegExp(`metrics +of all workers: ${url}/metrics`));
  t.is(await get('/readyz'), '{"status":"ok"}');
  await waitFor('the metrics of both workers', async () => {
    const text = await get('/metrics');
    return (
      /^model_gateway_processes\{role="worker"\} 2$/m.test(text) && text.includes('{role="worker",version=')
    );
  });
  const [, apiUrl] = /API +(\S+)/.exec(readOutput())!;
  t.regex(
    await (await fetch(apiUrl!.replace(/v1$/, 'metrics'))).text(),
    /^model_gateway_processes\{role="api"\} 2$/m,
  );

  const isSecond = ({ name }: { readonly name: string }): boolean => name === 'worker 2';
  const killed = parts.find(isSecond)!;
  process.kill(killed.pid, 'SIGKILL');
  const restarted = await waitFor('the worker to be restarted', () =>
    findParts().find((part) => isSecond(part) && part.pid !== killed.pid),
  );
  t.teardown(() => endProcesses([restarted], 100));
  t.regex(readOutput(), /worker 2 stopped \(SIGKILL\); restarting in \d+ ms/);
  t.deepEqual(
    readdirSync(join(dataDir, 'logs')).filter((name) => /^(?:api|worker)/.test(name)),
    ['api.log', 'worker-1.log', 'worker-2.log'],
  );
  child.kill('SIGTERM');
  t.deepEqual(await ended, [0, null]);
  t.true([...parts, restarted].every(isGone));
});
