import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import mongoose from 'mongoose';
import { chooseMongo, chooseRedis, type Part } from '../../../scripts/start/parts.ts';
import { readCommandLine } from '../../../scripts/processes/process-identity.ts';
import { loadSecrets } from '../../../scripts/start/secrets-file.ts';
import { SupervisedPart } from '../../../scripts/start/supervise.ts';
import { readEnvironment } from '../../../shared/platform/config/config.ts';
import { waitFor } from '../../support/wait-for.ts';
import { EventLog, makeFolder } from './fake-parts.ts';

const { MongoClient } = mongoose.mongo;

function createContext(dataDir: string, env: NodeJS.ProcessEnv = { PATH: '' }) {
  return { env, values: readEnvironment(env), dataDir, secrets: loadSecrets(dataDir) };
}

async function startPart(t: ExecutionContext, { spec }: Part) {
  const events = new EventLog();
  const part = new SupervisedPart(spec!, events);
  t.teardown(() => part.stop());
  await part.start();
  return { events, part };
}

async function connectTo(t: ExecutionContext, url: string): Promise<mongoose.mongo.MongoClient> {
  const client = await MongoClient.connect(url, { serverSelectionTimeoutMS: 20_000 });
  t.teardown(() => client.close());
  return client;
}

/** Writes a program that runs the fake mongod. @returns its path */
function writeFakeMongod(t: ExecutionContext): string {
  const script = fileURLToPath(new URL('fake-mongod.js', import.meta.url));
  const path = join(makeFolder(t), 'mongod');
  writeFileSync(path, `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}

test('the embedded MongoDB requires its password, which is not in its arguments, output or description', async (t) => {
  const dataDir = makeFolder(t);
  const context = createContext(dataDir);
  const mongo = await chooseMongo(context);
  const { events, part } = await startPart(t, mongo);
  const { mongodbPassword } = context.secrets;
  const url = mongo.endpoints().MONGODB_URL!;
  t.is(new URL(url).password, mongodbPassword);

  const client = await connectTo(t, url);
  const things = client.db('x').collection<{ _id: number }>('things');
  await things.insertOne({ _id: 1 });
  t.regex(readCommandLine(part.pid!)!, /embedded\/mongo\/main\.js/);
  const { file, args } = mongo.spec!.launch();
  for (const output of [readCommandLine(part.pid!)!, file, ...args, events.output, mongo.describe()])
    t.false(output.includes(mongodbPassword));
  const unauthenticated = await connectTo(t, url.replace(/\/\/[^@]*@/, '//'));
  await t.throwsAsync(unauthenticated.db('x').collection('things').findOne(), { code: 13 });

  process.kill(part.pid!, 'SIGKILL');
  await waitFor('the part to run again', () => events.restarts.length === 1);
  t.is(await things.countDocuments(), 1, 'the same URL still works');
});

test('if secrets.json has no MongoDB password, one is added, and the other secrets do not change', (t) => {
  const dataDir = makeFolder(t);
  const { mongodbPassword: _, ...old } = loadSecrets(dataDir);
  writeFileSync(join(dataDir, 'secrets.json'), JSON.stringify(old));
  const secrets = loadSecrets(dataDir);
  t.like(secrets, old);
  t.true(secrets.mongodbPassword.length >= 32);
  t.deepEqual(loadSecrets(dataDir), secrets);
});

test('a mongod requires a password from its start, and accepts the one in secrets.json', async (t) => {
  const dataDir = makeFolder(t);
  const path = writeFakeMongod(t);
  const context = createContext(dataDir, { PATH: '', MONGOD_BIN: path });
  const mongo = await chooseMongo(context);
  const { part } = await startPart(t, mongo);
  const url = mongo.endpoints().MONGODB_URL!;
  const client = await connectTo(t, url);
  await client.db('admin').command({ ping: 1 });
  const direct = url.replace(/\/\/[^@]*@/, '//').replace(/\?.*/, '?directConnection=true');
  const unauthenticated = await connectTo(t, direct);
  await t.throwsAsync(unauthenticated.db('admin').command({ ping: 1 }), { code: 13 });
  const wrong = MongoClient.connect(url.replace(/:[^:@]*@/, ':wrong@'), { serverSelectionTimeoutMS: 20_000 });
  await t.throwsAsync(wrong, { code: 18 });

  const keyFile = join(dataDir, 'mongod.key');
  t.is(statSync(keyFile).mode & 0o777, 0o600);
  const output = [readCommandLine(part.pid!)!, mongo.describe()].join(' ');
  t.regex(output, /--keyFile/);
  t.false(
    output.includes(context.secrets.mongodbPassword) || output.includes(readFileSync(keyFile, 'utf8').trim()),
  );
  await part.stop();
});

test('a mongod also starts with data that has no users yet, on another port, and with another password', async (t) => {
  const dataDir = makeFolder(t);
  const path = writeFakeMongod(t);
  const start = async (password: string) => {
    const context = createContext(dataDir, { PATH: '', MONGOD_BIN: path });
    const mongo = await chooseMongo({
      ...context,
      secrets: { ...context.secrets, mongodbPassword: password },
    });
    const { part } = await startPart(t, mongo);
    const client = await connectTo(t, mongo.endpoints().MONGODB_URL!);
    await client.db('admin').command({ ping: 1 });
    await client.close();
    await part.stop();
    return readFileSync(join(dataDir, 'mongod.key'), 'utf8');
  };
  const firstKey = await start('one');
  const statePath = join(dataDir, 'mongod', 'state.json');
  t.true(existsSync(statePath));
  const state = JSON.parse(readFileSync(statePath, 'utf8')) as { users: object };
  writeFileSync(statePath, JSON.stringify({ ...state, users: {} }));
  t.not(await start('one'), firstKey, 'the key file, which gives full access, has a new key at each start');
  await start('two');
});

test('the address of an external server is shown without its password, for every notation of the address', async (t) => {
  const describe = async (env: NodeJS.ProcessEnv): Promise<string> => {
    const context = createContext(makeFolder(t), { PATH: '', ...env });
    const part = env['MONGODB_URL'] === undefined ? await chooseRedis(context) : await chooseMongo(context);
    return part.describe();
  };
  t.is(await describe({ MONGODB_URL: 'mongodb://u:s3cret@a:1,b:2/x' }), 'mongodb://a:1,b:2/x');
  for (const password of ['s3cret', 's3,cret', 's3%40cret'])
    t.is(await describe({ MONGODB_URL: `mongodb://u:${password}@a:1/x` }), 'mongodb://a:1/x', password);
  for (const password of ['s3/cret', 's3@cret']) {
    const refusal = await t.throwsAsync(describe({ MONGODB_URL: `mongodb://u:${password}@a:1/x` }));
    t.regex(refusal.message, /percent-encoded/);
    t.notRegex(refusal.message, /cret/);
  }
  for (const password of ['s3cret', 's3,cret', 's3@cret']) {
    const cluster = `redis://:${password}@a:1, redis://:${password}@b:2`;
    t.is(await describe({ REDIS_URL: cluster }), 'redis://a:1,redis://b:2', password);
  }
  const refusal = await t.throwsAsync(describe({ REDIS_URL: 'redis://:s3cret@a:1,redis://:other@b:2' }));
  t.regex(refusal.message, /the same protocol, user and password/);
  t.notRegex(refusal.message, /cret|other/);
});
