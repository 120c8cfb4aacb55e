import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { dist } from '../../scripts/start/paths.ts';
import { runAdmin } from '../support/admin.ts';
import { postJson } from '../support/post-json.ts';
import { waitFor } from '../support/wait-for.ts';

/** A mount of its own, which only the supervisor and its parts see: it needs no root where users have namespaces. */
const mountAndRun = 'mount -t tmpfs -o size=60m none "$DATA_DIR" && exec "$0" "$@"';
function canMount(): boolean {
  const command = ['-rm', 'sh', '-c', 'mount -t tmpfs none /mnt && exec "$0" "$@"', 'true'];
  return spawnSync('unshare', command).status === 0;
}

interface SmallDisk {
  /** What `npm start` has printed so far. */
  shown(): string;
  /** Its DATA_DIR as this process reaches it. */
  readonly dataDir: string;
  readonly url: string;
  readonly apiKey: string;
  isRunning(): boolean;
  fill(): void;
  free(): void;
}

async function startOnSmallDisk(t: ExecutionContext): Promise<SmallDisk> {
  const folder = mkdtempSync(join(tmpdir(), 'mg-full-disk-'));
  const args = ['-rm', 'sh', '-c', mountAndRun, process.execPath, dist('scripts/start/main.js')];
  const env = { PATH: process.env['PATH'], DATA_DIR: folder, PORT: '0' };
  const child = spawn('unshare', args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = once(child, 'exit');
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  t.teardown(async () => {
    if (child.exitCode === null) child.kill('SIGTERM');
    await exited;
    // The mount went with the last process that saw it.
    rmdirSync(folder);
  });
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  await waitFor(
    () => `the start, which says ${text}`,
    () => text.includes('users/profile') || !isRunning(),
    60_000,
  );
  const dataDir = `/proc/${child.pid}/root${folder}`;
  const filler = join(dataDir, 'filler');
  return {
    shown: () => text,
    dataDir,
    url: /http:\/\/[\d.:]+(?=\/v1)/.exec(text)?.[0] ?? '',
    apiKey: /mg-[\w-]{43}/.exec(text)?.[0] ?? '',
    isRunning,
    fill() {
      for (let bytes = 1_048_576; bytes >= 1; bytes = Math.floor(bytes / 4)) {
        const piece = Buffer.alloc(bytes);
        try {
          for (;;) appendFileSync(filler, piece);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
    },
    free: () => rmSync(filler),
  };
}

const requests = [
  {
    path: '/v1/chat/completions',
    body: { model: 'demo-echo', messages: [{ role: 'user', content: 'hello' }] },
  },
  {
    path: '/v1/chat/completions',
    body: { model: 'demo-echo', stream: true, messages: [{ role: 'user', content: 'hello' }] },
  },
  { path: '/v1/embeddings', body: { model: 'use-lite-en-512', input: 'cat' } },
  {
    path: '/v1/images/generations',
    body: { model: 'demo-svg-image', prompt: 'a lighthouse', response_format: 'url' },
  },
];

async function ask({ url, apiKey }: SmallDisk): Promise<number[]> {
  return await Promise.all(
    requests.map(async ({ path, body }) => {
      const response = await postJson(`${url}${path}`, apiKey, body);
      await response.text();
      return response.status;
    }),
  );
}

test('on a full disk requests are 503 and nothing ends; once there is room all goes on by itself, and the books are right', async (t) => {
  if (!canMount()) {
    t.log('skipped: a small disk needs a mount of its own, and `unshare -rm` is not allowed here');
    t.pass();
    return;
  }
  const disk = await startOnSmallDisk(t);
  t.deepEqual(await ask(disk), [200, 200, 200, 200]);
  disk.fill();
  await waitFor('Redis to notice', async () => (await ask(disk)).every((status) => status === 503), 60_000);
  // A little of what waits may find room yet, as where a log gives some back: then Redis is well until its next write.
  await waitFor('health to tell', async () => {
    const health = await fetch(`${disk.url}/v1/health`);
    await health.text();
    if (health.status !== 503) await ask(disk);
    return health.status === 503;
  });
  // The last page of each log takes a few lines more.
  await waitFor('the console to tell', async () => {
    await ask(disk);
    return disk.shown().includes('lines are lost');
  });

  disk.free();
  await waitFor('service', async () => (await ask(disk)).every((status) => status === 200), 60_000);
  await waitFor('health', async () => {
    const answer = (await (await fetch(`${disk.url}/v1/health`)).json()) as { status: string };
    return answer.status === 'ok';
  });
  await waitFor('the console to tell', () => /are written again; \d+ lines? /.test(disk.shown()));

  t.true(disk.isRunning());
  // No part died, and the loss of lines was told once.
  t.notRegex(disk.shown(), /stopped \(/);
  t.is(disk.shown().split('lines are lost').length, 2, disk.shown());
  const verified = await runAdmin({ DATA_DIR: disk.dataDir }, 'ledger', 'verify', '--json');
  t.is(verified.exitCode, 0, verified.stdout + verified.stderr);
  t.like(JSON.parse(verified.stdout), { differences: [] });
});
