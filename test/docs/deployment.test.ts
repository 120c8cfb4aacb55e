import { existsSync, readFileSync } from 'node:fs';
import test from 'ava';
import { operations } from '../../api/contract/operations.ts';
import type { Operation } from '../../shared/contract/operation.ts';
import { readEnvironment } from '../../shared/platform/config/config.ts';
import { apiFilePrefix, filePrefix } from '../../shared/platform/storage/file-name.ts';
import { answerPrefix } from '../../shared/platform/storage/lifecycle-rules.ts';
import { createClient } from '../../shared/platform/storage/mongo-client.ts';

const page = readFileSync('docs/deployment.md', 'utf8');

/** Names and values of variables, from the lines of the page that set one. */
const settings = [...page.matchAll(/^([A-Z0-9_]+)=(.+)$/gm)].map(
  ([, name, value]) => [name!, value!] as const,
);

test('every variable that the page sets is read, and accepts the value shown', async (t) => {
  t.true(settings.length > 5);
  for (const [name, value] of settings) {
    t.is(String(readEnvironment({ [name]: value })[name as 'REDIS_URL']), value, name);
    if (name === 'MONGODB_URL') await createClient(value).close();
  }
});

test('the programs that the page mentions exist', (t) => {
  const programs = [...page.matchAll(/node (dist\/[\w/-]+\.js)/g)].map(([, path]) => path!);
  t.deepEqual([...new Set(programs)].toSorted(), [
    'dist/api/main.js',
    'dist/scripts/start/api-processes.js',
    'dist/workers/health.js',
    'dist/workers/main.js',
  ]);
  for (const program of programs) t.true(existsSync(program), program);
});

test('the nginx body size allows the largest API request body', (t) => {
  const limits = Object.values<Operation>(operations).map(({ bodyLimitBytes = 0 }) => bodyLimitBytes);
  const [, megabytes] = /client_max_body_size (\d+)m;/.exec(page) ?? [];
  t.true(Number(megabytes) * 2 ** 20 >= Math.max(...limits));
});

test('the S3 permissions cover the folders that the gateway uses', (t) => {
  const policy = JSON.parse(/^```json\n(.*?)^```/ms.exec(page)?.[1] ?? '') as {
    Statement: { Resource: string | string[] }[];
  };
  const folders = policy.Statement.flatMap(({ Resource }) => Resource)
    .map((resource) => resource.split('/').slice(1).join('/'))
    .filter((folder) => folder !== '');
  t.deepEqual(folders.toSorted(), [`${answerPrefix}*`, `${apiFilePrefix}*`, `${filePrefix}*`]);
});
