import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { createLogger, type Logger } from '../../shared/platform/runtime/logger.ts';
import { isMongoUnavailable, openMongo } from '../../shared/platform/storage/mongo-client.ts';
import { insertMissing } from '../../shared/platform/storage/insert-missing.ts';
import { nameDatabase, requireMongod, useRealMongo } from '../support/real-mongod.ts';
import { findStablePort } from '../support/stable-port.ts';
import { waitFor } from '../support/wait-for.ts';

const realTest = requireMongod(test.serial);

/** `openMongo` limits a command to seven seconds if the server hangs; doubled for a busy machine. */
const longestMs = 2 * 7_000;

realTest(
  'if the server hangs, waiting commands fail with an outage error in time; once the server continues, commands work again',
  async (t) => {
    const set = await useRealMongo(t, 'one');
    const mongo = openMongo(nameDatabase(set.url), createLogger('test', 'silent'));
    t.teardown(() => mongo.close());
    const rows = mongo.db.collection<{ _id: string }>('rows');
    await rows.insertOne({ _id: 'first' });
    const commands = {
      read: () => rows.findOne({ _id: 'first' }),
      cursor: () => rows.find({}).toArray(),
      insert: () => rows.insertOne({ _id: 'second' }),
      batch: () => insertMissing(rows, [{ _id: 'third' }]),
      'update of many': () => rows.updateMany({}, { $set: { seen: true } }),
    };
    set.stop(0);
    const startedMs = performance.now();
    await Promise.all(
      Object.entries(commands).map(async ([name, run]) => {
        const error = await t.throwsAsync<Error>(run, undefined, name);
        t.true(isMongoUnavailable(error), `${name}: ${error?.message}`);
      }),
    );
    t.true(performance.now() - startedMs < longestMs);
    set.cont(0);
    await waitFor('the server', () => rows.findOne({ _id: 'first' }).catch(() => null));
  },
);

realTest(
  'if a write does not reach a majority in time, it fails with an outage error, and so does each repetition',
  async (t) => {
    const set = await useRealMongo(t, 'arbiter');
    const log = createLogger('test', 'silent');
    const mongo = openMongo(nameDatabase(set.url), log);
    t.teardown(() => mongo.close());
    // The product's timeout is 15 s.
    const writeConcern = { w: 'majority', wtimeoutMS: 200 } as const;
    const rows = mongo.db.collection<{ _id: string; n?: number; attempts?: number }>('rows', {
      writeConcern,
    });
    // A write that can be repeated: one that has timed out may be there nevertheless.
    const create = () => rows.updateOne({ _id: 'old' }, { $inc: { attempts: 1 } }, { upsert: true });
    await waitFor('a majority', () => create().catch(() => null));
    await rows.createIndex({ n: 1 });
    await set.kill(1 - (await set.findPrimary()));
    const writes = {
      insert: () => rows.insertOne({ _id: 'new' }),
      batch: () => insertMissing(rows, [{ _id: 'new' }, { _id: 'other' }]),
      update: () => rows.updateOne({ _id: 'old' }, { $set: { n: 1 } }),
      'update that changes nothing': () => rows.updateOne({ _id: 'none' }, { $set: { n: 1 } }),
      'batch of updates': () =>
        rows.bulkWrite([{ updateOne: { filter: { _id: 'old' }, update: { $set: { n: 2 } } } }]),
      'find and update': () => rows.findOneAndUpdate({ _id: 'old' }, { $inc: { n: 1 } }),
      upsert: () => rows.updateOne({ _id: 'third' }, { $setOnInsert: { n: 1 } }, { upsert: true }),
      delete: () => rows.deleteMany({ _id: 'third' }),
      index: () => rows.createIndex({ n: 1 }),
    };
    for (const round of [1, 2]) {
      for (const [name, write] of Object.entries(writes)) {
        const error = await t.throwsAsync<Error>(write, undefined, `${name}, round ${round}`);
        t.true(isMongoUnavailable(error), `${name}, round ${round}: ${error?.message}`);
      }
    }
  },
);

realTest(
  'without a replica set, callers get service_unavailable, and the log explains how to initiate one',
  async (t) => {
    const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
    const port = await findStablePort();
    const args = ['--bind_ip', '127.0.0.1', '--port', String(port), '--dbpath', dir, '--nounixsocket'];
    const server = spawn(process.env['TEST_MONGOD_BIN']!, args, { stdio: 'ignore' });
    const exited = once(server, 'exit');
    const logged: string[] = [];
    const log = { ...createLogger('test', 'silent'), error: (_: unknown, line: string) => logged.push(line) };
    const mongo = openMongo(`mongodb://127.0.0.1:${port}/`, log as unknown as Logger);
    t.teardown(async () => {
      await mongo.close();
      server.kill('SIGKILL');
      await exited;
      await rm(dir, { recursive: true });
    });
    const accounts = new AccountStore(mongo.db, { masterKey: '', revealsKeys: false });
    await waitFor('the server', () => accounts.findByIds([]).catch(() => null));
    await t.throwsAsync(accounts.findById('any', true), { code: 'service_unavailable' });
    t.is(logged.length, 1);
    t.regex(logged[0]!, /rs\.initiate/);
  },
);
