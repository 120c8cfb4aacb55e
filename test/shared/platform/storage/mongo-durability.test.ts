import test from 'ava';
import { ConfigError } from '../../../../shared/platform/runtime/config-error.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { openMongo } from '../../../../shared/platform/storage/mongo-client.ts';
import { checkDurability } from '../../../../shared/platform/storage/mongo-durability.ts';

const base = 'mongodb://127.0.0.1:1/gateway';

for (const option of [
  'w=1',
  'w=3',
  'w=0',
  'W=1',
  'journal=false',
  'readConcernLevel=local',
  'readPreference=nearest',
]) {
  test(`a MONGODB_URL with ${option} is rejected, and the message says what to write`, (t) => {
    const error = t.throws(() => checkDurability(`${base}?replicaSet=rs0&${option}`), {
      instanceOf: ConfigError,
    });
    const [name] = option.split('=') as [string];
    t.true(error.message.includes(`MONGODB_URL has ${option}`), error.message);
    t.true(error.message.includes(`remove it, or use ${name}=`), error.message);
  });
}

test('a MONGODB_URL is accepted without options, or with the options that the gateway requires', (t) => {
  t.notThrows(() => checkDurability(base));
  t.notThrows(() =>
    checkDurability(`${base}?retryWrites=true&w=majority&journal=true&readPreference=primary`),
  );
});

test('every write waits for a majority, with a time limit, and every read returns only majority-committed data', async (t) => {
  const mongo = openMongo(`${base}?w=majority&wtimeoutMS=0`, createLogger('test', 'silent'));
  t.teardown(() => mongo.close());
  const { writeConcern, readConcern } = mongo.db.collection('ledger');
  t.like(writeConcern, { w: 'majority', wtimeoutMS: 15_000 });
  t.is(readConcern?.level, 'majority');
});

test('a MONGODB_URL with the old name of the write timeout is rejected, because the driver would confuse it with ours', (t) => {
  t.throws(() => checkDurability(`${base}?w=majority&wtimeout=1000`), {
    instanceOf: ConfigError,
    message: /wtimeout=1000.*15 s.*remove it/,
  });
});
