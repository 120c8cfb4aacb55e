import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { conditionNames } from '../../shared/contract/condition-names.ts';
import { errorKinds } from '../../shared/contract/error-kinds.ts';
import { startWorker } from '../../workers/worker.ts';
import { runAdmin } from '../support/admin.ts';
import { captureLog } from '../support/captured-log.ts';
import { allQueues, useStack } from '../support/stack.ts';

/** What an operator types and looks for, as the pages name it. */

const operations = readFileSync('docs/operations.md', 'utf8');
const pages = [operations, readFileSync('docs/scaling.md', 'utf8')];
const runbook = /^## At three in the morning\n(.*?)^## /ms.exec(operations)?.[1] ?? '';

const findCode = (text: string): string[] => [...text.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!);

function* findSources(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* findSources(path);
    else if (path.endsWith('.ts')) yield readFileSync(path, 'utf8');
  }
}

test('every admin command that the pages name exists, with its options', async (t) => {
  const { stderr } = await runAdmin({});
  const usages = new Map(
    [...stderr.matchAll(/^ {2}([a-z]+(?: [a-z-]+)?)(.*)$/gm)].map(([, command, usage]) => [command!, usage!]),
  );
  const lines = pages.flatMap((page) => [
    ...findCode(page).filter((code) => code.startsWith('admin ')),
    ...[...page.matchAll(/npm run -s admin -- (.*)$/gm)].map(([, rest]) => `admin ${rest}`),
  ]);
  t.true(lines.length > 30);
  for (const line of lines) {
    const [, command = ''] = /^admin ([a-z]+(?: [a-z][a-z-]*)?)/.exec(line) ?? [];
    const usage = usages.get(command);
    if (usage === undefined) t.regex(line, /^admin(?: user)? …/, `${line}: there is no such command`);
    else for (const [option] of line.matchAll(/--[a-z-]+/g)) t.true(usage.includes(option), line);
  }
});

test('every metric that the pages name is exported', async (t) => {
  const stack = await useStack(t, { workers: [], env: { METRICS_PORT: '0' } });
  const { log, lines } = captureLog();
  const worker = await startWorker(stack.config, stack.env, log, allQueues);
  t.teardown(() => worker.stop());
  const { metricsUrl } = lines.find(({ msg }) => msg === 'worker ready') as unknown as { metricsUrl: string };
  const texts = await Promise.all(
    [`${stack.url}/metrics`, metricsUrl].map(async (url) => (await fetch(url)).text()),
  );
  const exported = new Set(
    texts.flatMap((text) => [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name!)),
  );
  // Only groups of processes have these.
  for (const name of ['processes', 'processes_unanswered_total']) exported.add(`model_gateway_${name}`);
  const table = /^## Metrics\n(.*?)^## /ms.exec(operations)?.[1] ?? '';
  const named = [
    ...pages.flatMap((page) => page.match(/model_gateway_\w+/g) ?? []),
    ...[...table.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, names]) =>
      findCode(names!).map((name) => `model_gateway_${name}`),
    ),
  ].filter((name) => name !== 'model_gateway_');
  t.true(named.length > 60);
  t.deepEqual(
    [...new Set(named)].filter((name) => !exported.has(name)),
    [],
  );
});

test('every log line, error code and condition that the runbook names exists', (t) => {
  const sources = ['api', 'workers', 'shared', 'scripts']
    .flatMap((folder) => [...findSources(folder)])
    .join('\n');
  const names = new Set<string>([...Object.keys(errorKinds), ...conditionNames, 'rate_limited']);
  const ofOthers =
    /^(?:admin|npm|curl|node|grep|sum by|openssl|date|df|redis-cli|SLOWLOG|appendfsync|CONFIG|GET|db\.)|^\/|^--|=|_memory$/;
  let count = 0;
  for (const code of findCode(runbook)) {
    if (ofOthers.test(code) || code.startsWith('model_gateway_')) continue;
    if (code.includes(' ')) t.true(sources.includes(code), `no log line: ${code}`);
    else if (code.includes('_') && code === code.toLowerCase()) t.true(names.has(code), `no name: ${code}`);
    else continue;
    count += 1;
  }
  t.true(count > 40);
});
