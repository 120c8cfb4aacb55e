import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import mongoose from 'mongoose';
import { addCredentials } from '../../../../scripts/embedded/credentials.ts';
import { readFirstLine } from '../../../../scripts/start/read-first-line.ts';
import { makeTempDir, startMongo } from './mongo-fixture.ts';

const main = new URL('../../../../scripts/embedded/mongo/main.js', import.meta.url).pathname;

const password = 'test-mongo-password';

/** A limit on file size simulates a full disk: the same system calls fail, and the limit can be removed. */
const limitFiles = (pid: number, bytes: number | 'unlimited'): boolean =>
  spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]).status === 0;
const canLimit = process.platform === 'linux' && spawnSync('prlimit', ['--version']).status === 0;
const onLinux = canLimit ? test : test.skip;

async function startProcess(t: ExecutionContext, dir: string) {
  const child = spawn(process.execPath, [main, '--dir', dir], { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.end(password);
  t.teardown(() => child.kill('SIGKILL'));
  const { endpoint } = JSON.parse(await readFirstLine(child.stdout, new AbortController().signal)) as {
    endpoint: string;
  };
  return { child, url: addCredentials(endpoint, password) };
}

onLinux(
  'writes that fail on a full disk have no effect, acknowledged writes are not lost, and once there is space writes succeed',
  async (t) => {
    const dir = await makeTempDir(t);
    const { child, url } = await startProcess(t, dir);
    const exited = once(child, 'exit');
    // lmdb 3.5.6 formats the message of a failed write in a buffer that is too small for some messages (`last_error` in
    // mdb.c), which may kill the process. `npm start` restarts it. In either case, the data on disk must be correct.
    const hasDied = (): boolean => child.exitCode !== null || child.signalCode !== null;
    const options = { retryWrites: false, serverSelectionTimeoutMS: 2_000 };
    const client = await mongoose.mongo.MongoClient.connect(url, options);
    const db = client.db('test');
    const rows = db.collection<{ _id: string; n: number; text: string }>('rows');
    await rows.createIndex({ n: 1 }, { unique: true });

    const acknowledged = new Set<string>();
    /** Writes that got no response, so they may or may not have been applied. */
    const unknown = new Set<string>();
    const codes = new Set<unknown>();
    let n = 0;
    const write = async (collection: string, bytes: number): Promise<void> => {
      n += 1;
      const row = { _id: String(n), n, text: 'x'.repeat(bytes) };
      try {
        await db.collection<typeof row>(collection).insertOne(row);
        if (collection === 'rows') acknowledged.add(row._id);
      } catch (error) {
        if (hasDied() || error instanceof mongoose.mongo.MongoNetworkError) unknown.add(row._id);
        else codes.add((error as { code?: unknown }).code);
      }
    };
    const writeMany = (collection: string) =>
      Promise.all(Array.from({ length: 24 }, (_, i) => write(collection, i % 3 === 0 ? 300_000 : 10)));

    await writeMany('rows');
    t.is(acknowledged.size, 24);
    t.true(limitFiles(child.pid!, statSync(join(dir, 'data.mdb')).size));
    for (let round = 0; round < 4 && !hasDied(); round += 1) await writeMany('rows');
    // This collection cannot be created. `checkRecovery` verifies that it does not exist in memory either.
    await write('never made', 5_000_000);
    if (hasDied()) t.log('the process died while lmdb formatted its message about the full disk');
    else await checkRecovery();
    await client.close();
    child.kill('SIGKILL');
    await exited;
    t.true([...codes].every((code) => code === 14_031));
    if (unknown.size > 0) t.true(hasDied());

    // Rejected writes are not on disk either.
    const again = await mongoose.mongo.MongoClient.connect((await startMongo(t, { dir })).url);
    t.teardown(() => again.close());
    const found = await again.db('test').collection<{ _id: string }>('rows').find().toArray();
    const foundIds = new Set(found.map(({ _id }) => _id));
    t.deepEqual(
      [...acknowledged].filter((id) => !foundIds.has(id)),
      [],
    );
    t.deepEqual(
      [...foundIds].filter((id) => !acknowledged.has(id) && !unknown.has(id)),
      [],
    );
    t.is(
      await again
        .db('test')
        .collection('rows')
        .countDocuments({ n: { $gt: 0 } }),
      found.length,
    );
    t.true(found.every((row) => [10, 300_000].includes((row as unknown as { text: string }).text.length)));

    async function checkRecovery(): Promise<void> {
      t.deepEqual([...codes], [14_031]);
      t.false((await db.listCollections().toArray()).some(({ name }) => name === 'never made'));
      t.is(await rows.countDocuments(), acknowledged.size);
      t.is(await rows.countDocuments(), acknowledged.size);
      const refused = n - acknowledged.size;
      t.true(refused > 0);

      t.true(limitFiles(child.pid!, 'unlimited'));
      await writeMany('rows');
      t.is(n - acknowledged.size, refused, 'all writes are accepted again');
    }
  },
);

onLinux('if the disk is not writable, the start fails in one line and creates no files', async (t) => {
  const dir = await makeTempDir(t);
  const script = 'ulimit -f 0; exec "$0" "$@"';
  const { status, stderr } = spawnSync('sh', ['-c', script, process.execPath, main, '--dir', dir], {
    encoding: 'utf8',
    input: password,
  });
  t.is(status, 1);
  t.regex(stderr, /^EFBIG: [^\n]*\n$/);
  t.deepEqual(readdirSync(dir), []);
});
