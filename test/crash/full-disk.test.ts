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

/**
 * Mounts in a namespace that only the supervisor and its parts see; this needs no root if user namespaces are allowed.
 */
const mountAndRun = 'mount -t tmpfs -o size=60m none "$DATA_DIR" && exec "$0" "$@"';
function canMount(): boolean {
  const command = ['-rm', 'sh', '-c', 'mount -t tmpfs none /mnt && exec "$0" "$@"', 'true'];
  return spawnSync('unshare', command).status === 0;
}

interface SmallDisk {
  /** The output of `npm start` so far. */
  output(): string;
  /** Its DATA_DIR, as seen from this process. */
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
    // The mount disappeared with the last process in its namespace.
    rmdirSync(folder);
  });
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  await waitFor(
    () => `the start, with output ${text}`,
    () => text.includes('users/profile') || !isRunning(),
    60_000,
  );
  const dataDir = `/proc/${child.pid}/root${folder}`;
  const filler = join(dataDir, 'filler');
  return {
    output: () => text,
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

async function sendAll({ url, apiKey }: SmallDisk): Promise<number[]> {
  return await Promise.all(
    requests.map(async ({ path, body }) => {
      const response = await postJson(`${url}${path}`, apiKey, body);
      await response.text();
      return response.status;
    }),
  );
}

test('while the disk is full, requests get a 503 and no process exits; once there is space, requests are served without a restart, and the ledger is consistent', async (t) => {
  if (!canMount()) {
    t.log('skipped: a small disk needs a mount of its own, and `unshare -rm` is not allowed here');
    t.pass();
    return;
  }
  const disk = await startOnSmallDisk(t);
  t.deepEqual(await sendAll(disk), [200, 200, 200, 200]);
  disk.fill();
  await waitFor(
    'Redis to notice that the disk is full',
    async () => (await sendAll(disk)).every((status) => status === 503),
    60_000,
  );
  // A small write may still succeed, for example after a log frees some space; then Redis is healthy until its next
  // write.
  await waitFor('health to report it', async () => {
    const health = await fetch(`${disk.url}/v1/health`);
    await health.text();
    if (health.status !== 503) await sendAll(disk);
    return health.status === 503;
  });
  // The last page of each log has room for a few more lines.
  await waitFor('the console to report it', async () => {
    await sendAll(disk);
    return disk.output().includes('lines are lost');
  });

  disk.free();
  await waitFor(
    'requests to be served again',
    async () => (await sendAll(disk)).every((status) => status === 200),
    60_000,
  );
  await waitFor('health to recover', async () => {
    const health = (await (await fetch(`${disk.url}/v1/health`)).json()) as { status: string };
    return health.status === 'ok';
  });
  await waitFor('the console to report it', () => /are written again; \d+ lines? /.test(disk.output()));

  t.true(disk.isRunning());
  // No process died, and the loss of log lines was reported once.
  t.notRegex(disk.output(), /stopped \(/);
  t.is(disk.output().split('lines are lost').length, 2, disk.output());
  const verified = await runAdmin({ DATA_DIR: disk.dataDir }, 'ledger', 'verify', '--json');
  t.is(verified.exitCode, 0, verified.stdout + verified.stderr);
  t.like(JSON.parse(verified.stdout), { differences: [] });
});
