import type { ExecutionContext } from 'ava';
import test from 'ava';
import { Binary } from 'bson';
import mongoose from 'mongoose';
import { embeddedUser } from '../../../../scripts/embedded/credentials.ts';
import { MongoWireClient } from '../../../support/mongo-wire-client.ts';
import { makeTempDir, startMongo } from './mongo-fixture.ts';

const { MongoClient } = mongoose.mongo;
const password = 'test-mongo-password';
const user = { username: embeddedUser, password };

async function connectUnauthenticated(t: ExecutionContext, url: string): Promise<MongoWireClient> {
  const client = await MongoWireClient.connect(url);
  t.teardown(() => client.socket.destroy());
  return client;
}

test('without authentication the server responds only to commands that a driver needs before it authenticates', async (t) => {
  const { url } = await startMongo(t);
  const client = await connectUnauthenticated(t, url);
  for (const name of ['hello', 'isMaster', 'ping']) t.is((await client.command({ [name]: 1 })).ok, 1, name);
  const things = { documents: [{}], cursor: {}, pipeline: [], updates: [], deletes: [], indexes: [] };
  const names = ['find', 'insert', 'update', 'delete', 'aggregate', 'dropDatabase', 'listIndexes'];
  for (const name of [...names, 'listCollections', 'createIndexes', 'serverStatus', 'getMore', 'killCursors'])
    t.like(await client.command({ [name]: 'c', ...things }), {
      ok: 0,
      code: 13,
      codeName: 'Unauthorized',
      errmsg: `Command ${name} requires authentication`,
    });
  t.is((await client.command({ commitTransaction: 1 })).code, 13);
  t.is((await client.command({ nonsense: 1 })).code, 13);
});

test('an authentication applies only to its own connection', async (t) => {
  const { url } = await startMongo(t, { password });
  const [client, otherClient] = [await connectUnauthenticated(t, url), await connectUnauthenticated(t, url)];
  t.like(await client.authenticate(user), { ok: 1, done: true });
  t.is((await client.command({ insert: 'c', documents: [{ _id: 1 }] })).ok, 1);
  t.is((await otherClient.command({ find: 'c' })).code, 13);
  t.like(await client.authenticate({ ...user, password: 'another' }), { code: 18 });
  t.is(
    (await client.command({ find: 'c' })).cursor.firstBatch.length,
    1,
    'a failed attempt does not sign out an authenticated connection',
  );
});

test('a wrong password, user or database fails with the error of MongoDB, which does not reveal what is wrong', async (t) => {
  const { url } = await startMongo(t, { password });
  const failed = { ok: 0, code: 18, codeName: 'AuthenticationFailed', errmsg: 'Authentication failed.' };
  const client = await connectUnauthenticated(t, url);
  t.like(await client.authenticate({ ...user, password: `${password}x` }), failed);
  t.like(await client.authenticate({ ...user, password: '' }), failed);
  t.like(await client.authenticate({ ...user, username: 'admin' }), failed);
  t.like(await client.authenticate(user, { db: 'test' }), failed);
  t.is((await client.command({ find: 'c' })).code, 13);
  // The same connection can authenticate afterwards.
  t.like(await client.authenticate(user, { skipEmptyExchange: false }), { ok: 1, done: true });
  t.is((await client.command({ find: 'c' })).ok, 1);
});

test('an authentication exchange that violates the protocol fails and grants no access', async (t) => {
  const { url } = await startMongo(t, { password });
  const client = await connectUnauthenticated(t, url);
  const start = (payload: unknown, mechanism = 'SCRAM-SHA-256') =>
    client.command({ saslStart: 1, mechanism, payload }, { db: 'admin' });
  const next = (payload: string, conversationId = 1) =>
    client.command(
      { saslContinue: 1, conversationId, payload: new Binary(Buffer.from(payload)) },
      { db: 'admin' },
    );
  t.is((await next('')).code, 17, 'no conversation was started');
  t.is((await start('n,,n=a,r=b', 'PLAIN')).code, 334);
  t.is((await start('n,,n=a,r=b', 'SCRAM-SHA-1')).code, 334);
  for (const text of [
    '',
    'n',
    'p=tls-unique,,n=model-gateway,r=x',
    'n,a=other,n=model-gateway,r=x',
    'n,,n=model-gateway',
    'n,,n=model-gateway,r=',
    'n,,m=x,n=model-gateway,r=x',
  ])
    t.is((await start(new Binary(Buffer.from(text)))).code, 18, text);
  t.is((await start('n,,n=model-gateway,r=x')).code, 18, 'a string is not a payload');

  const begin = async (): Promise<string> => {
    const { payload } = await start(new Binary(Buffer.from(`n,,n=${embeddedUser},r=abc`)));
    return /^r=([^,]*)/.exec(Buffer.from((payload as Binary).value()).toString())![1]!;
  };
  const proof = Buffer.alloc(32).toString('base64');
  t.regex(await begin(), /^abc.{20,}$/, "the nonce starts with the client's nonce");
  t.is((await next(`c=biws,r=abc,p=${proof}`)).code, 18, "only the client's nonce");
  t.is((await next(`c=biws,r=abc,p=${proof}`)).code, 17, 'one try per exchange');
  for (const final of [
    'c=eSws,r=NONCE,p=PROOF',
    'c=biws,r=NONCE',
    'r=NONCE,p=PROOF',
    'c=biws,r=NONCE,p=AAAA',
    '',
  ]) {
    const nonce = await begin();
    t.is((await next(final.replace('NONCE', nonce).replace('PROOF', proof))).code, 18, final);
  }
  await begin();
  t.is((await next('', 2)).code, 17, 'another conversation');
  t.is((await client.command({ find: 'c' })).code, 13);
});

test('the unmodified driver authenticates in its first message or later', async (t) => {
  const dir = await makeTempDir(t);
  const server = await startMongo(t, { dir, password });
  t.is(new URL(server.url).username, embeddedUser);
  t.false(server.endpoint.includes(password));
  const mechanisms = ['DEFAULT', 'SCRAM-SHA-256'] as const;
  for (const authMechanism of mechanisms) {
    const client = await MongoClient.connect(server.url, { authMechanism });
    t.teardown(() => client.close());
    await client.db('test').collection('c').insertOne({ authMechanism });
  }
  const wrong = MongoClient.connect(server.url.replace(password, 'another'));
  const error = await t.throwsAsync<mongoose.mongo.MongoServerError>(wrong);
  t.is(error?.code, 18);
  t.notRegex(`${error?.message} ${error?.stack}`, /another/);
  const nobody = await MongoClient.connect(server.endpoint);
  t.teardown(() => nobody.close());
  await t.throwsAsync(nobody.db('test').collection('c').findOne(), { message: /requires authentication/ });
});

test('the password is the one given at the current start, because the data folder does not store it', async (t) => {
  const first = await startMongo(t, { password: 'one' });
  const before = await MongoClient.connect(first.url);
  await before.db('test').collection<{ _id: number }>('c').insertOne({ _id: 1 });
  await before.close();
  await first.close();
  const second = await startMongo(t, { dir: first.dir, password: 'two' });
  const after = await MongoClient.connect(second.url);
  t.teardown(() => after.close());
  t.is(await after.db('test').collection('c').countDocuments(), 1);
  await t.throwsAsync(MongoClient.connect(second.url.replace('two', 'one')), {
    message: /Authentication failed/,
  });
});

test('an empty password or one that SASLprep would change is rejected at startup', async (t) => {
  await t.throwsAsync(startMongo(t, { password: '' }), { message: /visible ASCII/ });
  await t.throwsAsync(startMongo(t, { password: 'ра' }), { message: /visible ASCII/ });
});
